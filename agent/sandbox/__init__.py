"""The sandbox of a coding agent, and its gateway to the model.

- `bubblewrap`: A command in a box: it sees its work tree, its home and the system's programs, and nothing else of the
  machine.
- `gateway`: The one way out of the box: a Unix socket whose requests go on to the model server, with the real key put
  in.
- `bounded_server`: An HTTP server on a Unix socket for a client that is not trusted: connections, bytes and time are
  bounded.
- `watchdog`: What all processes of a turn use together, measured from outside while it runs: no limit of a process
  can bound that.
- `init`: What runs first in the box: it starts the agent, and brings its model requests to the gateway's socket.
- `scratch`: The folder of a turn that its agent may read: prompt, socket, small files. It goes with its turn, or the
  next one.
"""
