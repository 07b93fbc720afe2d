"""Batch work: many items or actions, in this process, in child processes, or in a Ray cluster.

- `actions`: Run several actions, so that one that fails does not prevent the others.
- `task_faults`: Faults of tasks that run again and again, each until its step has succeeded.
- `driver`: Run a function for each item in an executor, and commit the results in this process.
- `processes`: Executor on this machine: child processes.
- `parent`: End of a child process with its parent.
- `ray_workers`: Executor in a Ray cluster: tasks on any of its machines.
- `reach`: Check that a process on another machine has the release of this one, and reads and writes the same lake.
"""
