"""Batch work: one function for many items, each in a worker outside of this process.

- `items`: Run a function for each item on some workers, repeat the items of workers that died, and yield in order.
- `call`: Call of a function in a worker.
- `processes`: Workers on this machine: child processes.
- `parent`: End of a child process with its parent.
- `ray_workers`: Workers in a Ray cluster: tasks on any of its machines.
- `reach`: Check that a process on another machine reads and writes the lake of this one.
"""
