"""Agent jobs: a prompt becomes a pull request.

In the order a prompt passes:

- `jobs`: jobs, their turns and their webhooks in the control database.
- `worker`: the threads and processes that work on turns.
- `git`: the repository of a job: clone, commit and push.
- `coding_agent`: the coding agents: how each is started, and how its output is read.
- `sandbox`: the sandbox of a coding agent, and its gateway to the model.
- `forge`: the pull request of a branch.
- `process`: programs that end at their limits.
- `retry`: retries of requests to a forge and of writes to the control database.
- `deadline`: requests that end at a deadline or with their turn.
- `errors`: errors of this package, without HTTP.
"""
