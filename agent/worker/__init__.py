"""The threads and processes that work on turns.

- `worker`: The threads of one process that work on turns, send webhooks and put idle jobs away.
- `turn`: One turn of a job, in steps: check out, run the coding agent, commit, push, open the pull request.
- `child_process`: A worker in a child process, so that agent jobs take neither the GIL nor the descriptors of the
  process that answers.
- `child_main`: What the child process of `agent.worker.child_process` runs: a worker, until the command pipe or its
  parent ends.
"""
