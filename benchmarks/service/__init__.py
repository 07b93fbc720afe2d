"""The service that is measured, and its clients.

- `server`: the service in a process of its own, with an additional empty endpoint.
- `client`: an HTTP client that is faster than the server.
- `arrivals`: hits that arrive while something else is measured.
- `beside`: single posts while reports are asked for: `python -m benchmarks service.beside`.
- `reader`: timed requests of reports.
- `nodes`: posts to one, two and three nodes with one PostgreSQL database, against a node with SQLite.
- `object_store`: reports over a lake in an object store, against the same lake in a local folder.
"""
