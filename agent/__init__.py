"""Agent jobs: a prompt becomes a pull request.

In the order a prompt passes:

- `configuration`: what a project's jobs need to know; `secret`: where a token or a key is, and what it is.
- `job`: a job and its states; `tables`: where they are kept.
- `uses`: how often a project may ask.
- `store`: jobs created, followed up, read, cancelled and archived.
- `queue`: the turns that wait, each held by one worker at a time.
- `worker`: the threads that work on them; `worker_process`, `worker_main`: a worker in a child process.
- `turn`: one turn, step by step.
- `workspace`: a checkout, a commit, a push; `remote`, `git`: the repository's host and the commands that speak to it.
- `runner`: the coding agent, from a prompt and a work tree to what it says it did.
- `presets`: the coding agents by name: how each is started, continued and believed.
- `sandbox`: the box that it runs in; `watchdog`: what all of its processes use together.
- `gateway`: the box's only way out, which adds the model key; `bounded_server`: the HTTP server that it is.
- `scratch`: the folder of a turn that its agent may read.
- `inside`: what runs first in the box, and forwards the agent's requests to the gateway.
- `record`: what an agent's output says of its turn.
- `forge`, `code_host`, `host_answer`: the pull request of a branch at GitHub, GitLab, Gitea, Forgejo and Pagure.
- `journal`: a job's log.
- `webhook`: a project is told when a job leaves active; `sender`: the threads that do it.
- `asking`: a request that ends within its limit, and when its turn is stopped.
- `patience`: a host that does not answer is asked again; `process`: a program that ends when it must.
- `errors`: what can go wrong, without HTTP.
"""
