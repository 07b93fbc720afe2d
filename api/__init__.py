"""The service's interfaces: HTTP and the command line. Only this package knows HTTP.

- `cli`: the command line, one module for each group of commands.
- `settings`: the settings of an operator, read once.
- `data_folder`, `control_database`: the data folder and the control database that a command opens.
- `logs`: the log of a process, on standard error.
- `server`: the processes of a running service.
- `app`: the routes, and what starts and stops with them.
- `state`: the objects that the requests of one worker share.
- `agent_worker`: the settings of a worker of agent jobs.
- `http`: the stages that every request passes.
- `keys`: API keys and their scopes.
- `cache`: the cache of keys and projects.
- `routes`: one module for each resource.
- `reference`: the OpenAPI description and its page.
- `maintenance`: the thread that loads, compacts and vacuums the lake.
- `metrics`: the metrics of the service.
- `errors`: errors of this package.
"""
