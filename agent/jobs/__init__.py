"""Agent jobs and their turns in the control database.

- `configuration`: configuration of a project's agent jobs: repository, forge, coding agent, model, secrets.
- `secret_ref`: references to secrets, which are read on each use and never stored.
- `job`: an agent job, its statuses, and the transitions between them.
- `job_json`: an agent job as the API and the webhooks represent it.
- `tables`: statements on the tables of agent jobs in the control database.
- `quota`: limit on a project's prompts per hour.
- `store`: create, continue, read, cancel, archive and remove jobs, each in one transaction.
- `steps`: finished steps of a turn and their results.
- `queue`: queue of turns: a lease table with one row per turn.
- `journal`: log of a job: its turns, their steps, the output of the coding agent, and failures.
- `webhook`: messages to a project's webhook about jobs that are no longer active.
"""
