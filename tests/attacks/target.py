"""The service that an attack runs against, and what the attack costs the service."""

import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.processes.running import Running

TIMEOUT_S = 30
RECEIVE_BYTES = 1 << 16


@contextmanager
def attacked(environ: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Yield a service with a temporary data folder."""
    with tempfile.TemporaryDirectory(prefix="readership-attack-") as folder:
        running = Running(Path(folder) / "data", environ={"READERSHIP_JOBS_AT_ONCE": "0", **(environ or {})}).start()
        try:
            yield running
        finally:
            running.kill()


def connect(running: Running) -> socket.socket:
    url = httpx.URL(running.url)
    return socket.create_connection((url.host, url.port or 80), TIMEOUT_S)


def send(connection: socket.socket, content: bytes, times: int = 1) -> int:
    """Send `content` until the service closes the connection, at most `times`; return the number of bytes sent."""
    sent = 0
    with suppress(ConnectionError):
        for _ in range(times):
            connection.sendall(content)
            sent += len(content)
    return sent


def received(connection: socket.socket) -> bytes:
    """Return what the service sends until it closes the connection."""
    answer = b""
    with suppress(ConnectionError):
        while chunk := connection.recv(RECEIVE_BYTES):
            answer += chunk
    return answer


def resident_mib(running: Running, name: str = "VmRSS") -> float:
    """Return the resident memory of the service, or with `VmHWM` its maximum, in MiB."""
    assert running.process is not None
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024


def sockets(running: Running) -> int:
    """Return the number of open sockets of the service."""
    assert running.process is not None
    count = 0
    for each in Path(f"/proc/{running.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            count += str(each.readlink()).startswith("socket:")
    return count
