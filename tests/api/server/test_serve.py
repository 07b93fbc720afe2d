"""The processes of a service get their settings from the process that starts them, and share their counters."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from api.server import serve
from tests.processes.running import Running
from tests.processes.waiting import each_alone, processes_of, started_processes, until, within_window
from tests.warehouse.site import ROOT

COUNT = """
import sys
from pathlib import Path
from api.server import serve
folder, number = sys.argv[1:]
serve.join_counters(Path(folder), int(number))
from prometheus_client import CollectorRegistry, Counter, generate_latest, multiprocess
Counter("events", "Events.").inc()
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


@pytest.mark.long
def test_restarted_process_has_the_run_secret_of_the_service(start: Callable[..., Running]) -> None:
    """Check that all processes count the beacons of an address together: the secret keys the hashes of addresses."""
    service = start(processes=2, READERSHIP_BEACONS_PER_MINUTE="3")

    def beacons(address: str) -> list[int]:
        headers = {"X-Forwarded-For": address}
        return [
            httpx.post(service.hits, json={"path": "/a"}, headers=headers, timeout=60).status_code
            for _ in range(2)
            for _ in each_alone(service)
        ]

    first, second = started_processes(service)
    os.kill(first, signal.SIGKILL)
    until(lambda: len({*processes_of(service)} - {first, second}) == 1)
    assert within_window(beacons) == [202, 202, 202, 429]


def total(folder: Path, number: int) -> str:
    """Count one event in a process of the number `number`, and return the total that the process reports."""
    argv = [sys.executable, "-c", COUNT, str(folder), str(number)]
    printed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return next(line for line in printed.splitlines() if line.startswith("events_total"))


@pytest.mark.long
def test_processes_report_the_sum_and_a_restarted_one_continues_its_count(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "metrics"
    serve.create_counters(folder, 2)
    assert [total(folder, number) for number in (0, 1, 1)] == [f"events_total {sum}.0" for sum in (1, 2, 3)]
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        f"{kind}_{number}.db" for kind in ("counter", "histogram") for number in (0, 1)
    )


def test_new_files_are_empty_and_allocated(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    serve.create_counters(folder, 1)
    (folder / "counter_7.db").write_bytes(b"of an earlier service")
    serve.create_counters(folder, 1)
    assert sorted(file.name for file in folder.iterdir()) == ["counter_0.db", "histogram_0.db"]
    for file in folder.iterdir():
        assert file.read_bytes() == bytes(1 << 20)
        assert file.stat().st_blocks * 512 >= 1 << 20
