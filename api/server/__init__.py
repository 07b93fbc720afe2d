"""The processes of a running service.

- `connections`: Limits on HTTP connections, so that idle ones never use up a process's file descriptors.
- `serve`: The processes of a running service: one, or a supervisor with several workers behind one socket.
- `supervisor`: The supervisor of worker processes: it starts them, restarts those that die, and ends all of them.
- `http_worker`: The entry point of an HTTP worker, a process that the supervisor starts.
- `service_lock`: The lock that makes a service the only one on its data folder.
- `shared_counters`: Counters in files that all workers of a service read, so that each can answer `/metrics` for all
  of them.
"""
