"""Answers that a client asks for and does not read, on many connections without a key."""

import resource
import socket
import time
from contextlib import ExitStack, suppress

import httpx

from tests.attacks.target import attacked, connect, resident_mib, sockets
from tests.processes.running import Running

GET = b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n"
PIPELINED = 2_000
"""Number of requests that each connection sends at once: 64 KB."""
USUAL, SOCKETS = 1_024, 900
"""Limit of open files that most systems give a service, and number of connections that once stopped such a service."""
MANY = 1_500
END_S = 150
POLL_S = 0.5


def limit_files(running: Running, files: int) -> None:
    assert running.process is not None
    resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (files, files))


def hold(running: Running, stack: ExitStack, connections: int, pipelined: int = PIPELINED) -> list[socket.socket]:
    """Open connections that ask for many answers, and read none."""
    opened = [stack.enter_context(connect(running)) for _ in range(connections)]
    for each in opened:
        each.settimeout(1)
        with suppress(TimeoutError, ConnectionError):
            each.sendall(GET * pipelined)
    return opened


def answers(running: Running, connections: int = 200) -> int:
    """Open more connections, which stay open; return how many of their requests are answered."""
    with ExitStack() as stack:
        return sum(_is_answered(stack.enter_context(connect(running))) for _ in range(connections))


def _is_answered(connection: socket.socket) -> bool:
    connection.settimeout(10)
    try:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        return connection.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def seconds_until_closed(running: Running, before: int) -> float:
    """Return the time until the service has no more sockets than `before`: a client sees no reset behind answers."""
    began = time.monotonic()
    while sockets(running) > before and time.monotonic() - began < END_S:
        time.sleep(POLL_S)
    return time.monotonic() - began if sockets(running) <= before else float("inf")


def drip(running: Running, connection: socket.socket, before: int) -> float:
    """Read 100 bytes of the answers each second; return the time until the service closes the connection."""
    began = time.monotonic()
    connection.sendall(GET * 20)
    while sockets(running) > before and time.monotonic() - began < END_S:
        connection.recv(100)
        time.sleep(1)
    return time.monotonic() - began if sockets(running) <= before else float("inf")


def small_window(running: Running) -> socket.socket:
    """Return a connection of which the service's kernel sends a few KiB at a time."""
    url = httpx.URL(running.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((url.host, url.port))
    return connection


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with attacked() as running, ExitStack() as stack:
        limit_files(running, USUAL)
        hold(running, stack, SOCKETS)
        print(f"{SOCKETS} of {USUAL} files held: {answers(running)} of 200 requests answered", flush=True)
    with attacked() as running, ExitStack() as stack:
        time.sleep(1)
        before, idle = resident_mib(running), sockets(running)
        hold(running, stack, MANY)
        seconds = seconds_until_closed(running, idle)
        print(
            f"{MANY} connections: +{resident_mib(running, 'VmHWM') - before:.0f} MiB, closed after {seconds:.0f} s",
            flush=True,
        )
    with attacked() as running:
        time.sleep(1)  # the connection that waited for the start is closed
        idle = sockets(running)
        with small_window(running) as connection:
            print(f"100 bytes a second: closed after {drip(running, connection, idle):.0f} s")


if __name__ == "__main__":
    main()
