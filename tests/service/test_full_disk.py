"""A service on a full disk refuses posts, answers all other requests, and recovers when there is space."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import pytest

from tests.processes.running import Running
from tests.processes.waiting import each_alone, processes_of, started_processes, until
from tests.stores.small_disk import SmallDisk

pytestmark = pytest.mark.long

HIT = {"path": "/a", "userAgent": "GPTBot/1.2"}
LEFT_BYTES = 512 * 1024
"""Space for the `-shm` files of three SQLite databases and for log lines, in bytes; far below what posts need."""
TOTALS = {"human": 0, "ai": 3, "total": 3}
"""The totals of the hits that were stored before the disk was full."""


@pytest.fixture
def service(small_disk: SmallDisk, processes: int) -> Iterator[Running]:
    """Yield a service whose data and log are on the small disk."""
    # Without a value, as without the variable, Python buffers standard error.
    environ = {"READERSHIP_LOAD_EVERY_S": "1", "READERSHIP_JOBS_AT_ONCE": "0", "PYTHONUNBUFFERED": ""}
    running = Running(small_disk.folder / "data", processes, environ).start()
    for _ in range(3):
        assert running.post(HIT).status_code == 202
    yield running
    assert running.process is not None
    if running.process.poll() is None:
        running.kill()


def checks(service: Running) -> dict[str, str]:
    """Return the checks of `/readyz`."""
    checks_by_name: dict[str, str] = httpx.get(f"{service.url}/readyz", timeout=60).json()["checks"]
    return checks_by_name


def is_known_full(disk: SmallDisk, service: Running) -> bool:
    disk.fill()  # also the space that a load has freed
    return "disk full" in checks(service)["hotLog"]


def kill_processes(service: Running) -> None:
    for each in processes_of(service):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@contextmanager
def stopped_supervisor(service: Running) -> Iterator[None]:
    """Stop the supervisor while the block runs: a server process that dies is not replaced."""
    assert service.process is not None
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def recovers(disk: SmallDisk, service: Running) -> None:
    """Free the space, and check that the export has exactly the hits that were answered 202."""
    disk.free()
    until(lambda: service.post(HIT).status_code == 202)
    until(lambda: set(checks(service).values()) == {"ok"})
    assert service.get()["totals"] == {"human": 0, "ai": 4, "total": 4}
    assert service.stop() == 0


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.night)])
def test_full_disk_refuses_posts_and_answers_the_export(small_disk: SmallDisk, service: Running) -> None:
    for _ in each_alone(service) if service.processes > 1 else [None]:
        until(lambda: is_known_full(small_disk, service))
        refused = service.post(HIT)
        assert (refused.status_code, refused.json()["type"]) == (503, "/docs#overloaded")
        assert int(refused.headers["retry-after"]) > 0
        assert refused.json()["detail"].startswith("disk full: ")
        assert service.get()["totals"] == TOTALS
        assert service.get("dateFrom=2000-01-01")["totals"] == TOTALS
        assert httpx.get(f"{service.url}/metrics", timeout=60).status_code == 200
        assert "rollback" not in str(checks(service))
        small_disk.fill()
        assert len(client_ports(service)) == 1, "the connection stays open although the access log cannot be written"
    recovers(small_disk, service)


def client_ports(service: Running) -> set[tuple[str, int]]:
    """Return the addresses of the connections over which one client sends three requests."""
    ports = set()
    with httpx.Client(timeout=60) as client:
        for _ in range(3):
            with client.stream("GET", f"{service.url}/healthz") as answer:
                ports.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
                assert answer.read() == b'{"status":"ok"}'
    return ports


@pytest.mark.parametrize("processes", [2])
def test_server_process_that_dies_on_a_full_disk_is_replaced_at_once_or_when_there_is_space_to_start(
    small_disk: SmallDisk, service: Running
) -> None:
    before = started_processes(service)
    until(lambda: is_known_full(small_disk, service))
    small_disk.fill(LEFT_BYTES)
    kill_processes(service)
    until(lambda: len(set(processes_of(service)) - set(before)) == 2)
    for _ in each_alone(service):
        assert service.post(HIT).status_code == 503
        assert service.get()["totals"] == TOTALS
    with stopped_supervisor(service):
        kill_processes(service)
        until(lambda: not processes_of(service))
        for each in ("control.sqlite", "hot.sqlite", "run/limits.sqlite"):
            os.truncate(service.data / f"{each}-shm", 0)  # as SQLite does at its start, before it allocates the file
        small_disk.fill()
    first = until(lambda: set(processes_of(service)))
    until(lambda: not first & set(processes_of(service)))
    small_disk.fill(LEFT_BYTES)
    kill_processes(service)  # those that started on the full disk
    for _ in each_alone(service):
        assert service.get()["totals"] == TOTALS
    recovers(small_disk, service)
