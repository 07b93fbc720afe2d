"""Threads and processes that run turns.

- `child_process`: child process that runs a worker, started and restarted by the serving process.
- `child_main`: main module of the child process.
- `threads`: threads that take turns from the queue, send webhooks, and clean up after idle jobs.
- `heartbeat`: thread that renews the lease of a running turn.
- `turn`: steps of a turn: check out, run the coding agent, commit, push, open the pull request.
"""
