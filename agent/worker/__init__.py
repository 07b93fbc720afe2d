"""Worker: a process that takes turns from the queue and runs them.

- `child_process`: worker in a child process, started and restarted by a server process.
- `child_main`: main module of that worker.
- `threads`: threads of a worker, which take turns from the queue, send webhooks, and clean up after idle jobs.
- `heartbeat`: thread that renews the lease of a running turn.
- `job_folders`: locks of the jobs' folders, and the limit on the files of idle jobs.
- `turn`: steps of a turn: check out, run the coding agent, commit, push, open the pull request.
"""
