"""The command line: results on standard output, everything else on standard error.

- `main`: The program `readership`: it loads the module of the command that is called, and prints errors.
- `serve`: The command `serve`, and its parts that `demo` also uses.
- `demo`: The command `demo`: a service with sample projects.
- `worker`: The command `worker`: a service without HTTP.
- `project`: The commands `project` and `key`: projects with their origins and source policies, and API keys.
- `goal`: The command `goal`: the goals of a project.
- `deletion`: The deletion of a project from the control database, the hot log and the lake.
- `user`: The command `user`: the users of the dashboard.
- `agent`: The command `project agent`: the configuration of a project's agent jobs.
- `lake`: The commands that work on the lake: `flush`, `compact`, `rebuild`, `reclassify`, `retention` and `doctor`.
- `recover`: The command `recover`, for a data folder that lost a store or part of a table.
- `move`: The command `move`, which moves the stores of a data folder to PostgreSQL and an object store.
- `sql`: The commands `sql`, `files` and `classify`: queries, the files of a table, and explained classifications.
- `ranges`: The command `ranges`: the address lists with which agents are verified.
- `options`: Options that several commands have, the command `settings`, and the open control database.
- `log_import`: The command `import`, which imports access logs once or follows them.
- `output`: Output of the commands: tables on a terminal, JSON when piped.
"""
