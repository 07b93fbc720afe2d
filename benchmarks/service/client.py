"""HTTP client over persistent connections. Each connection sends a request as soon as it has the last response."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import uvloop

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "


@dataclass(slots=True)
class Outcome:
    """Number and latencies of the expected responses, the other responses, and the duration of the whole run."""

    seconds: float = 0.0
    answered: int = 0
    latencies_s: list[float] = field(default_factory=list)
    unexpected: list[bytes] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return self.answered / self.seconds


def request(method: str, target: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """Return the bytes of an HTTP/1.1 request."""
    lines = [f"{method} {target} HTTP/1.1", "Host: bench", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + HEAD_END + body


def drive(host: str, port: int, requests: list[bytes], clients: int, status: int) -> Outcome:
    """Send the requests over `clients` connections and return the outcome. `status` is the expected status."""
    return uvloop.run(_drive(host, port, requests, clients, status))


async def _drive(host: str, port: int, requests: list[bytes], clients: int, status: int) -> Outcome:
    loop = asyncio.get_running_loop()
    outcome, queue, expected = Outcome(), iter(requests), f"HTTP/1.1 {status} ".encode()
    connections = [_Connection(queue, expected, outcome, loop.create_future()) for _ in range(clients)]
    for connection in connections:
        await loop.create_connection(lambda connection=connection: connection, host, port)  # type: ignore[misc]
    began = time.perf_counter()
    for connection in connections:
        connection.send()
    await asyncio.gather(*(connection.done for connection in connections))
    outcome.seconds = time.perf_counter() - began
    return outcome


class _Connection(asyncio.Protocol):
    """One client connection. An asyncio stream would use more CPU time than the server under test."""

    def __init__(self, queue: Iterator[bytes], expected: bytes, outcome: Outcome, done: "asyncio.Future[None]") -> None:
        self._queue, self._expected, self._outcome = queue, expected, outcome
        self._began_s = 0.0
        self._received = b""
        self.done = done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own class does not derive from it

    def send(self) -> None:
        message = next(self._queue, None)
        if message is None:
            self._transport.close()
            self.done.set_result(None)
            return
        self._began_s = time.perf_counter()
        self._transport.write(message)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(HEAD_END)
        if end < 0:
            return
        at = self._received.find(LENGTH, 0, end)
        length = int(self._received[at + len(LENGTH) : self._received.index(b"\r\n", at)]) if at >= 0 else 0
        if len(self._received) < end + len(HEAD_END) + length:
            return
        self._outcome.latencies_s.append(time.perf_counter() - self._began_s)
        if self._received.startswith(self._expected):
            self._outcome.answered += 1
        else:
            self._outcome.unexpected.append(self._received)
        self._received = b""
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed the connection"))
