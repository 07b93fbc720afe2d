"""Posts without a key whose bodies arrive byte by byte, on as many connections as the service has files."""

import resource
import time
from contextlib import ExitStack, suppress

from tests.attacks.heads import status_of
from tests.attacks.target import RECEIVE_BYTES, attacked, connect, resident_mib
from tests.attacks.unread import answers, limit_files
from tests.processes.running import PROJECT, Running

USUAL, SLOW = 1_024, 900
"""Limit of open files of the service, and number of slow posts: more than a service with this limit serves."""
POST = (
    f"POST /v1/analytics/{PROJECT}/hits HTTP/1.1\r\nHost: x\r\n"
    "Content-Type: text/plain\r\nContent-Length: 8000\r\n\r\n{"
).encode()
MANY_ADDRESSES = {"READERSHIP_BEACONS_PER_MINUTE": "1000000"}
"""Environment in which the limit per address, which one machine meets, does not count."""
END_S = 150


def beside(running: Running, slow: int) -> tuple[int, float]:
    """Return how many of 200 requests are answered beside slow posts, and the memory of the posts in MiB."""
    before = resident_mib(running)
    with ExitStack() as stack:
        for _ in range(slow):
            stack.enter_context(connect(running)).sendall(POST)
        return answers(running), resident_mib(running, "VmHWM") - before


def drip(running: Running) -> tuple[int, float]:
    """Send a byte of a body each second; return the status of the answer, and the time until it in seconds."""
    began = time.monotonic()
    with connect(running) as connection:
        connection.sendall(POST)
        connection.settimeout(1)
        while time.monotonic() - began < END_S:
            with suppress(TimeoutError):
                return status_of(connection.recv(RECEIVE_BYTES)), time.monotonic() - began
            connection.send(b" ")
    return 0, END_S


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with attacked(MANY_ADDRESSES) as running:
        limit_files(running, USUAL)
        answered, mib = beside(running, SLOW)
        print(f"{SLOW} slow posts of {USUAL} files: {answered} of 200 requests answered, +{mib:.0f} MiB", flush=True)
    with attacked() as running:
        status, seconds = drip(running)
        print(f"a byte a second: status {status} after {seconds:.0f} s")


if __name__ == "__main__":
    main()
