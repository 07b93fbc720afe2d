"""Proxies to the tests' PostgreSQL and S3 servers that can close their connections or stop forwarding."""

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.stores.postgresql import new_database

SOCKET = ".s.PGSQL.5432"
PIECE_BYTES = 65_536


Address = str | tuple[str, int]
"""Path of a Unix socket, or host and port. A port at which a `Way` listens is one of `held_port`."""


class Way:
    """A socket that forwards to the server's socket until `cut`. After `silence` it accepts and forwards nothing."""

    def __init__(self, server: Address, here: Address) -> None:
        self._server, self._here = server, here
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener: socket.socket | None = None
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def cut(self) -> None:
        """Close every connection and refuse new ones."""
        if self._listener is None:
            return
        if isinstance(self._here, str):
            Path(self._here).unlink()
        _shut(self._listener)
        self._threads[0].join()  # after it no connection is added
        for each in self._ends:
            _shut(each)
        self._flowing.set()
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._ends):
            each.close()
        self._listener, self._ends, self._threads = None, [], []

    def restore(self) -> None:
        """Undo `cut` or `silence`."""
        self._flowing.set()
        if self._listener is None:
            self._listener = _new_socket(self._here)
            if not isinstance(self._here, str):
                for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                    self._listener.setsockopt(socket.SOL_SOCKET, option, 1)
            self._listener.bind(self._here)
            self._listener.listen()
            if isinstance(self._here, str):
                Path(self._here).chmod(0o777)
            self._begin(self._accept, self._listener)

    def silence(self) -> None:
        """Forward nothing, in either direction, until `restore` or `cut`."""
        self._flowing.clear()

    def _begin(self, do: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=do, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                here, _ = listener.accept()
                there = _new_socket(self._server)
                self._ends += [here, there]
                there.connect(self._server)
                self._begin(self._forward, here, there)

    def _forward(self, here: socket.socket, there: socket.socket) -> None:
        """Pass on both directions of a connection until it ends, and close both sockets."""
        back = threading.Thread(target=self._pass_on, args=(there, here))
        back.start()
        self._pass_on(here, there)
        back.join()
        here.close()
        there.close()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                self._flowing.wait()
                target.sendall(piece)
        _shut(source)
        _shut(target)


def _new_socket(address: Address) -> socket.socket:
    return socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)


def _shut(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


@contextmanager
def way_to(server: str) -> Iterator[tuple[Way, str, str]]:
    """Yield a proxy to a new database, with the URL of that database through the proxy and its direct URL."""
    url = new_database(server)
    with tempfile.TemporaryDirectory(prefix="readership-way-") as folder:
        way = Way(str(Path(server) / SOCKET), str(Path(folder) / SOCKET))
        way.restore()
        try:
            yield way, url.replace(server, folder), url
        finally:
            way.cut()
