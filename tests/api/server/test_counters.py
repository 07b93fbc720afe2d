"""Server processes count in files of their own, and each reports the sum of all files."""

import subprocess
import sys
from pathlib import Path

import pytest

from api.server import counters
from tests.warehouse.site import ROOT

COUNT = """
import os, sys
from api.server import counters
os.environ[counters.FOLDER], *numbers = sys.argv[1:]
counters.share()
from prometheus_client import CollectorRegistry, Counter, generate_latest, multiprocess
events = Counter("events", "Events.")
for number in numbers:
    counters.join(int(number))
    events.inc()
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


def total(folder: Path, *numbers: int) -> str:
    """Count one event in a process for each number that it has in turn, and return the total that it reports."""
    argv = [sys.executable, "-c", COUNT, str(folder), *map(str, numbers)]
    printed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return next(line for line in printed.splitlines() if line.startswith("events_total"))


@pytest.mark.long
def test_processes_report_the_sum_and_a_restarted_one_continues_its_count(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "metrics"
    counters.create(folder, 2)
    assert [total(folder, *each) for each in ((0,), (1,), (1, 0))] == [f"events_total {sum}.0" for sum in (1, 2, 4)]
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        f"{kind}_{number}.db" for kind in counters.TYPES for number in (0, 1, counters.FORK_SERVER)
    )


def test_new_files_are_empty_and_allocated(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    counters.create(folder, 1)
    (folder / "counter_7.db").write_bytes(b"of an earlier service")
    counters.create(folder, 1)
    assert not (folder / "counter_7.db").exists()
    for file in folder.iterdir():
        assert file.read_bytes() == bytes(1 << 20)
        assert file.stat().st_blocks * 512 >= 1 << 20
