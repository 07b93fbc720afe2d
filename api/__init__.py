"""The service's interfaces: HTTP and the command line. Only this package knows HTTP.

- `cli`: the command line, one module for each group of commands.
- `settings`: the settings of an operator, read once.
- `environment`: the values of environment variables, checked.
- `data_folder`: the data folder that a command opens.
- `logs`: the log of a process, on standard error.
- `server`: the processes of a running service.
- `app`: the ASGI app: its routes and its lifespan.
- `state`: the objects that all requests of one server process share.
- `http`: the stages of each request: key, parameters, body, media types, errors and the access log.
- `accounts`: users, sessions, API keys, one-time links and share links.
- `client_address`: networks and keyed hashes of client addresses.
- `cache`: the cache of keys, projects and source policies.
- `goals`: new goals, as a request, a form or a command defines them.
- `routes`: the handlers, one module for each resource.
- `reports`: the reports, one record each.
- `reference`: the OpenAPI document and its HTML page.
- `dashboard`: the pages of the dashboard.
- `background`: the settings of the maintenance thread and of the worker of agent jobs.
- `metrics`: the metrics of the service.
- `errors`: errors of this package.
"""
