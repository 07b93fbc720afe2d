"""Child processes run items, die, are replaced, and end with their block."""

import os
import signal
from pathlib import Path

import pytest

from tests.warehouse.batch.tasks import DyingProcess, fail, process_id, square
from warehouse.batch import items
from warehouse.batch.processes import ChildProcess, processes
from warehouse.errors import ItemFailed


def test_dead_child_is_replaced_and_its_item_repeated(tmp_path: Path) -> None:
    marker = tmp_path / "died"
    worker = DyingProcess(marker)
    try:
        assert list(items.run([worker], square, [("two", 2), ("three", 3)])) == [("two", 4), ("three", 9)]
        assert marker.exists()
        with pytest.raises(ItemFailed, match="one and two"):
            list(items.run([worker], fail, [("two", 2)]))
        pid = worker.submit(process_id, 0).result()
    finally:
        worker.close()
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_busy_child_ends_with_its_block() -> None:
    worker = ChildProcess()
    pid = worker.submit(process_id, 0).result()
    call = worker.submit(_wait_for_ever, 0)
    worker.close()
    assert call.exception() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_one_item_runs_in_this_process() -> None:
    with processes(2, 1) as workers:
        assert list(items.run(workers, process_id, [("one", 1)])) == [("one", os.getpid())]


def _wait_for_ever(number: int) -> None:
    signal.pause()
