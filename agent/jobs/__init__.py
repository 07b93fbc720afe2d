"""Agent jobs and their turns in the control database.

- `configuration`: What a project's agent jobs need to know: repository, code host, coding agent, and where the
  secrets are.
- `secret_ref`: A secret is told by where it is, and read there when it is used: it is never kept, nor said.
- `job`: An agent job and its states: the one place that knows which follows which.
- `tables`: The tables of agent jobs in the control database. Times are microseconds since 1970.
- `quota`: How often a project may ask for agents: so many creates, and so many messages, in any hour.
- `store`: Jobs in the control database: created, followed up, read, cancelled and archived, each in one transaction.
- `queue`: The queue of turns: a lease table, a row a turn.
- `journal`: A job's log: what its turns did, what the coding agent printed last, and why a turn failed.
- `webhook`: A project's webhook: told when a job leaves active, until it has taken the message, whoever is killed
  meanwhile.
- `sender`: The threads of one process that send webhooks, for several projects at once: a slow receiver delays its
  own alone.
"""
