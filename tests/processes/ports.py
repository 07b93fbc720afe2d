"""TCP ports that no other process takes, for programs and settings that need the number of a port."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """Yield a port of 127.0.0.1 at which connections are refused, and which only sockets with SO_REUSEPORT can use.

    nginx sets the option for `listen ... reuseport`, and Caddy sets it for each address.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        yield port
