"""Many requests for `/readyz` at once, which needs no key and reads the stores."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.attacks.target import attacked
from tests.processes.running import Running
from tests.processes.waiting import until
from tests.stores import object_store

CLIENTS, REQUESTS = 20, 1_000


def flood(running: Running, requests: int = REQUESTS) -> float:
    """Send the requests over CLIENTS connections, and return the requests a second that are answered."""

    def get(count: int) -> None:
        with httpx.Client(timeout=60) as client:
            for _ in range(count):
                client.get(f"{running.url}/readyz")

    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(get, [requests // CLIENTS] * CLIENTS))
    return requests / (time.perf_counter() - began)


@contextmanager
def counted_store(log: Path) -> Iterator[str]:
    """Yield the URL of an S3 server that writes its requests to `log`."""
    port = object_store.free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            until(lambda: "Press CTRL+C" in log.read_text())
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def lists(log: Path) -> int:
    return log.read_text().count("list-type=2")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "store.log"
        with counted_store(log) as url:
            environ = {**object_store.environ(url), "READERSHIP_LAKE": object_store.new_bucket(url)}
            os.environ.update(environ)
            with attacked(environ) as running:
                before = lists(log)
                rate = flood(running)
                print(f"{REQUESTS} requests: {rate:.0f} a second, {lists(log) - before} list requests of the store")


if __name__ == "__main__":
    main()
