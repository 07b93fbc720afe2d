"""The command line: results on standard output, everything else on standard error.

- `main`: The program `readership`: it loads the module of the command that is called, and prints errors.
- `serve`: The command `serve`, and the parts of it that `demo` has too.
- `demo`: The command `demo`: a service with sample projects.
- `worker`: The command `worker`: a service without HTTP.
- `project`: The commands that change the control database: `project` and `key`.
- `deletion`: The deletion of a project from the control database, the hot log and the lake.
- `user`: The command `user`: the users of the dashboard.
- `agent`: The command `project agent`: the configuration of a project's agent jobs.
- `lake`: The commands that work on the lake: `flush`, `compact`, `rebuild`, `reclassify`, `retention` and `doctor`.
- `recover`: The command `recover`: a data folder that lost a store, or part of a table.
- `move`: The command `move`: the stores of a data folder to PostgreSQL and an object store.
- `sql`: The commands that answer questions: `sql`, `files` and `classify`.
- `ranges`: The command `ranges`: the address lists with which agents are verified.
- `options`: Options that several commands have, and the database that they open.
- `log_import`: The command `import`: imports access logs once, or follows them.
- `output`: Output of the commands: tables on a terminal, JSON when piped.
"""
