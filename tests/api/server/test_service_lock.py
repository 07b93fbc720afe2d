"""A second service on a data folder is refused, and does not affect the first one."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.errors import FolderInUse
from api.http.rate_limit import WINDOW_S
from api.server import service_lock
from tests.processes.running import COMMAND, PROJECT, Running
from tests.processes.waiting import each_alone, until

SAMPLE = Path(__file__).parents[3] / "sample_data" / "access.log"


def accepted(service: Running) -> float:
    """Return the number of accepted hits in the metrics."""
    families = text_string_to_metric_families(httpx.get(f"{service.url}/metrics").text)
    samples = [sample for family in families for sample in family.samples if sample.name == "readership_hits_total"]
    return sum(sample.value for sample in samples if sample.labels["outcome"] == "accepted")


def refused(data: Path, run: Path) -> str:
    with pytest.raises(FolderInUse) as error:
        service_lock.acquire(data, run, lambda text: None, ending_wait_s=0.1)
    return str(error.value)


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.night)])
def test_second_service_is_refused_and_the_first_keeps_counts(start: Callable[..., Running], processes: int) -> None:
    service = start(processes=processes, READERSHIP_BEACONS_PER_MINUTE="3")
    for _ in each_alone(service) if processes > 1 else range(1):
        assert service.post([{"path": "/a"}]).status_code == 202
    began_s = time.monotonic()
    assert [httpx.post(service.hits, json={"path": "/b"}).status_code for _ in range(3)] == [202] * 3
    assert service.process is not None
    for command in ("serve", "demo"):
        done = service.run(command, "--port", "0", "--workers", str(3 - processes))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"Error: another service (process {service.process.pid}) runs on the data folder")
        assert str(service.data) in done.stderr
        assert "--data" in done.stderr
    assert accepted(service) == processes + 3
    fourth = httpx.post(service.hits, json={"path": "/b"}).status_code
    assert fourth == 429 or time.monotonic() - began_s >= WINDOW_S, "the first three still count"
    assert service.stop() == 0


@pytest.mark.long
def test_worker_and_import_run_beside_a_service(start: Callable[..., Running]) -> None:
    service = start()
    worker = subprocess.Popen([COMMAND, "--data", service.data, "worker"], stderr=subprocess.PIPE, text=True)
    assert worker.stderr is not None
    assert "worker" in worker.stderr.readline()
    assert service.run("import", PROJECT, str(SAMPLE)).returncode == 0
    worker.terminate()
    worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert service.get()["totals"]["total"] > 0


@pytest.mark.long
def test_killed_service_leaves_no_lock_and_that_of_a_killed_supervisor_ends(start: Callable[..., Running]) -> None:
    service = start(processes=2)
    service.kill()
    assert service.start().get()["totals"]["total"] == 0
    assert service.process is not None
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait(60)
    service.processes = 1
    assert service.start().get()["totals"]["total"] == 0


def test_new_service_waits_for_one_that_is_ending(tmp_path: Path) -> None:
    first = service_lock.acquire(tmp_path, tmp_path, lambda text: None)
    first.mark_ending()
    messages: list[str] = []

    def end_first(text: str) -> None:
        messages.append(text)
        first.release()

    service_lock.acquire(tmp_path, tmp_path, end_first).release()
    assert messages == [f"waiting up to 30 s for the service of process {os.getpid()} on {tmp_path} to end"]


def test_wait_for_a_service_that_does_not_end_has_a_timeout(tmp_path: Path) -> None:
    first = service_lock.acquire(tmp_path, tmp_path, lambda text: None)
    assert f"another service (process {os.getpid()})" in refused(tmp_path, tmp_path)
    first.mark_ending()
    message = refused(tmp_path, tmp_path)
    assert f"a process of the last service still runs on the data folder {tmp_path}" in message
    assert f"fuser {tmp_path / service_lock.FILE}" in message
    first.release()


@pytest.mark.long
def test_service_marks_its_lock_at_the_signal_that_ends_it(start: Callable[..., Running]) -> None:
    service = start()
    lock = service.data / "run" / service_lock.FILE
    assert lock.read_text().split()[1] == "serving"
    assert service.stop() == 0
    assert until(lambda: lock.read_text().split()[1]) == "ending"
