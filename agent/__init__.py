"""Agent jobs: a prompt becomes a pull request.

In the order in which a prompt passes through them:

- `jobs`: jobs, their turns and their webhook messages in the control database.
- `worker`: the process that takes turns from the queue and runs them.
- `git`: the repository of a job: clone, commit and push.
- `coding_agent`: coding agents: how each one is started, and how its output is read.
- `sandbox`: sandbox of a coding agent, and its gateway to the model server.
- `forge`: pull requests at GitHub, GitLab, Gitea and Forgejo.
- `process`: programs with a time limit that end with their worker.
- `retry`: retries of requests to a forge and of writes to the control database, and deadlines of HTTP requests.
- `errors`: errors of this package, without HTTP.
"""
