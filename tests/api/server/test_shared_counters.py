"""Counters of several processes in files."""

import subprocess
import sys
from pathlib import Path

from api.server import shared_counters
from tests.warehouse.site import ROOT

COUNT = """
import sys
from pathlib import Path
from api.server import shared_counters
folder, number = sys.argv[1:]
shared_counters.join(Path(folder), int(number))
from prometheus_client import CollectorRegistry, Counter, generate_latest, multiprocess
Counter("events", "Events.").inc()
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


def total(folder: Path, number: int) -> str:
    """Count one event in a process of the number `number`, and return the total that the process reports."""
    argv = [sys.executable, "-c", COUNT, str(folder), str(number)]
    printed = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return next(line for line in printed.splitlines() if line.startswith("events_total"))


def test_processes_report_the_sum_and_a_restarted_one_continues_its_count(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "metrics"
    shared_counters.create(folder, 2)
    assert [total(folder, number) for number in (0, 1, 1)] == [f"events_total {sum}.0" for sum in (1, 2, 3)]
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        f"{kind}_{number}.db" for kind in ("counter", "histogram") for number in (0, 1)
    )


def test_new_files_are_empty_and_allocated(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    shared_counters.create(folder, 1)
    (folder / "counter_7.db").write_bytes(b"of an earlier service")
    shared_counters.create(folder, 1)
    assert sorted(file.name for file in folder.iterdir()) == ["counter_0.db", "histogram_0.db"]
    for file in folder.iterdir():
        assert file.read_bytes() == bytes(1 << 20)
        assert file.stat().st_blocks * 512 >= 1 << 20
