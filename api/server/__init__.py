"""The processes of a running service.

- `service_lock`: The lock that lets one service at a time use a data folder, and the URL of this service.
- `memory`: Allocators of a server process or an import, chosen such that freed memory returns to the operating system.
- `serve`: The processes of a running service: one, or a supervisor with several server processes that share a socket.
- `supervisor`: The supervisor of server processes: it starts them, restarts those that die, and ends all of them.
- `http_server`: The HTTP server of one process.
- `response_writer`: The transport of responses: a head is sent with the start of its body.
- `connections`: Limits on HTTP connections, so that idle ones never use up a process's file descriptors.
"""
