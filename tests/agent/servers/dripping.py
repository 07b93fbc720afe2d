"""Server that sends a response in small pieces, until after the client's deadline."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

PIECES, PAUSE_S = 100, 0.05


@dataclass
class Drip:
    """Address and counts of the server. `requests` were received; `completed` responses were read to their end."""

    url: str
    requests: int = 0
    completed: int = 0


@contextmanager
def dripping(begin: bytes, piece: bytes) -> Iterator[Drip]:
    """Run a server that handles one connection after the other."""

    def answer() -> None:
        while not ended.is_set():
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):
                if connection.recv(65_536):
                    drip.requests += 1
                    drop(connection)

    def drop(connection: socket.socket) -> None:
        connection.sendall(begin)
        for _ in range(PIECES):
            if ended.wait(PAUSE_S):
                return
            connection.sendall(piece)
        connection.sendall(b"\r\n")
        drip.completed += 1

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        drip = Drip(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield drip
        finally:
            ended.set()
            with suppress(ConnectionError):
                socket.create_connection(listener.getsockname()).close()  # ends the wait in `accept`
            thread.join()
