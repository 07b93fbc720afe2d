"""The sandbox of a coding agent, and its gateway to the model server.

- `scratch`: temporary folder of a turn: prompt, socket and small files that the agent may read.
- `seccomp`: filter of system calls in the sandbox.
- `bubblewrap`: command lines that run a program in the sandbox.
- `init`: first program in the sandbox: starts the agent and forwards its model requests to the gateway.
- `gateway`: HTTP proxy on a Unix socket, the only way out: it adds the model key to the calls that an agent may make.
- `unix_server`: HTTP server on a Unix socket for an untrusted client.
- `watchdog`: limits on the memory and disk space that all processes of a turn use together.
"""
