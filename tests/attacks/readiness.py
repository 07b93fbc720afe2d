"""Many requests for `/readyz` at once, which needs no key and reads the stores."""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.attacks.target import attacked
from tests.processes.running import Running
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


def lists(log: Path) -> int:
    return log.read_text().count("list-type=2")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "store.log"
        with object_store.logging_server(log) as url:
            environ = {**object_store.environ(url), "READERSHIP_LAKE": object_store.new_bucket(url)}
            os.environ.update(environ)
            with attacked(environ) as running:
                before = lists(log)
                rate = flood(running)
                print(f"{REQUESTS} requests: {rate:.0f} a second, {lists(log) - before} list requests of the store")


if __name__ == "__main__":
    main()
