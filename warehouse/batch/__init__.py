"""Batch work: many items or steps, in this process or in workers outside of it.

- `steps`: Run several steps, so that one that fails does not prevent the others.
- `task_faults`: Faults of tasks that run again and again, each until its step has succeeded.
- `items`: Run a function for each item on some workers, repeat the items of workers that died, and yield in order.
- `call`: Call of a function in a worker.
- `processes`: Workers on this machine: child processes.
- `parent`: End of a child process with its parent.
- `ray_workers`: Workers in a Ray cluster: tasks on any of its machines.
- `release`: Release of the program, with a hash of the source that workers run.
- `reach`: Check that a process on another machine has the release of this one, and reads and writes the same lake.
"""
