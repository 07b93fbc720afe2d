"""While a stopped process holds SQLite's write lock, posts are soon answered 503, and exports are answered."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from tests.processes.running import Running
from tests.processes.waiting import killed_on_failure, until

QUICK_S = 20
"""Timeout of a request, in seconds: well above LOCK_WAIT_S, and below the 30 s of the loader's wait for the lock."""
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
IN_A_COMMIT = """
import sys, time
from pathlib import Path
from warehouse.hotlog import batches

connection = batches.connect(Path(sys.argv[1]))
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE node SET id = id")
print("locked", flush=True)
time.sleep(300)
"""


@contextmanager
def stopped_writer(service: Running) -> Iterator[None]:
    """Stop a process by SIGSTOP inside a transaction on the hot log, and end it afterwards."""
    command = [sys.executable, "-c", IN_A_COMMIT, str(service.data / "hot.sqlite")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer, killed_on_failure(writer):
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"locked\n"
        os.kill(writer.pid, signal.SIGSTOP)
        yield
        writer.kill()


def post(service: Running, path: str, **fields: str) -> httpx.Response:
    hit = {"path": path, "userAgent": FIREFOX, **fields}
    return httpx.post(service.hits, json=hit, headers=service.auth, timeout=QUICK_S)


def ready(service: Running) -> httpx.Response:
    return httpx.get(f"{service.url}/readyz", timeout=QUICK_S)


@pytest.mark.long
def test_post_is_answered_503_and_the_export_answers_beside_a_stopped_writer(start: Callable[..., Running]) -> None:
    service = start()
    assert post(service, "/before").status_code == 202
    with stopped_writer(service):
        with ThreadPoolExecutor(2) as pool:  # both wait for the lock at the same time
            posts = [pool.submit(post, service, "/refused", **fields) for fields in ({}, {"eventId": "e"})]
        for refused in (each.result() for each in posts):
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) > 0
            assert "SQLITE_BUSY" in refused.json()["detail"]
        assert "SQLITE_BUSY" in ready(service).json()["checks"]["hotLog"]
        exported = httpx.get(service.views, headers=service.auth, timeout=QUICK_S).json()
        assert exported["views"] == [{"path": "/before", "human": 1, "ai": 0, "total": 1}]
    until(
        lambda: ready(service).status_code == 200
    )  # without a post: a load balancer sends requests only to a ready service
    assert post(service, "/after", eventId="e").status_code == 202
    assert service.get()["totals"] == {"human": 2, "ai": 0, "total": 2}
