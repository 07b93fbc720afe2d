"""Requests for `/readyz` without a key: each look-up lists three folders of the object store."""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.attacks.target import TIMEOUT_S, attacked
from tests.processes.running import Running
from tests.stores import object_store

REQUESTS, AT_ONCE = 1_000, 16


def lists(running: Running, log: Path, requests: int) -> tuple[int, set[int], float]:
    """Ask whether the service is ready. Return the lists that the store's log shows, the statuses, and seconds."""
    before, began = _lists(log), time.monotonic()
    with httpx.Client(timeout=TIMEOUT_S) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = {*pool.map(lambda _: client.get(f"{running.url}/readyz").status_code, range(requests))}
    return _lists(log) - before, statuses, time.monotonic() - began


def _lists(log: Path) -> int:
    return log.read_text().count("list-type=2")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="readership-attack-") as folder:
        log = Path(folder) / "log"
        with object_store.logging_server(log) as url:
            os.environ |= object_store.environ(url) | {"READERSHIP_LAKE": object_store.new_bucket(url)}
            with attacked(os.environ) as running:
                count, statuses, seconds = lists(running, log, REQUESTS)
    print(f"{REQUESTS:,} requests in {seconds:.1f} s: statuses {statuses}, {count} lists of the object store")


if __name__ == "__main__":
    main()
