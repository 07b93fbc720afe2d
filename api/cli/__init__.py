"""The command line, one module for each group of commands.

- `main`: The command line: `readership`. Results go to standard output, everything else to standard error.
- `serve`: The commands that go on until they are ended: `serve`, `demo` and `worker`.
- `demo`: A filled service to try: the sample log imported, its first export shown, and commands to paste.
- `project`: The commands that change the control database: `project` and `key`.
- `agent`: The command `project agent`: what a project's agent jobs need to know.
- `lake`: The commands that work on the lake itself: `flush`, `compact`, `rebuild`, `reclassify` and `doctor`.
- `retention`: The command `retention`: remove hits past the retention now.
- `recover`: The command `recover`: a data folder that lost a store, or part of a table.
- `files`: The command `files`: the Parquet files of a table.
- `sql`: The commands that answer: `classify` and `sql`.
- `log_import`: The command `import`: access logs into the lake, once or as they grow.
- `log_reading`: What the command `import` does, shows while it does it, and tells in the end.
- `progress`: What the command `import` shows on a terminal: its progress, and a table in the end.
- `os_errors`: Sentences for errors of the operating system; Python prints "[Errno 2] No such file or directory:
  '/x'".
- `output`: What the command line prints: pleasant on a terminal, JSON when piped.
"""
