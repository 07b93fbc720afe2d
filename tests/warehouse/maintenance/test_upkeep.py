"""A compaction by hand does all of its work, also if a part of it fails."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from datetime import date
from functools import partial

import pytest

from tests.warehouse.site import NOON, Site, view
from warehouse.batch.driver import THIS_PROCESS, Executor, Item, Result, ThisProcess
from warehouse.errors import LakeBusy
from warehouse.lake.lock import write_lock
from warehouse.maintenance import compact, upkeep
from warehouse.maintenance.compact import Compacted
from warehouse.maintenance.upkeep import Upkeep
from warehouse.rollups import catalog

TODAY = date(2026, 11, 1)


class Failing(ThisProcess):
    """An executor in which each merge fails."""

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        def fail(item: Item) -> Result:
            raise ValueError("damaged")

        return super().submit(fail if isinstance(item, compact.Merge) else function, item)


def run(site: Site, executor: Executor = THIS_PROCESS) -> Upkeep:
    progress = partial(nullcontext, lambda done, total: None)
    return upkeep.run(site.hot, site.root, site.share, TODAY, 0, progress, executor=executor)


@pytest.fixture
def filled(site: Site) -> Site:
    for _ in range(2):
        site.post(view(ts=NOON))
        site.load()
    return site


def rollups_written(site: Site) -> int:
    return len(list(site.root.glob("rollups/*/*/coverage.json")))


@pytest.mark.long
def test_result_has_the_partitions_and_the_rollups(filled: Site) -> None:
    assert run(filled) == Upkeep(Compacted(partitions=1, files_before=2, files_after=1), rollups=1)
    assert run(filled) == Upkeep(Compacted(partitions=0, files_before=0, files_after=0), rollups=0)


@pytest.mark.long
def test_rollups_are_written_and_files_are_deleted_after_a_compaction_that_failed(filled: Site) -> None:
    unused = filled.root / "hits" / "date=2026-09-15" / "part-unused.parquet"
    unused.touch()
    filled.age()
    with pytest.raises(ValueError, match="damaged") as caught:
        run(filled, Failing())
    assert caught.value.__notes__ == ["in hits of 2026-09-15", "in the compaction"]
    assert rollups_written(filled) == 1
    assert not unused.exists()


@pytest.mark.long
def test_rollup_that_a_newer_one_replaced_is_deleted(filled: Site) -> None:
    run(filled)
    before = {rollup.folder for rollup in catalog.list_rollups(filled.root, "2026-09")}
    filled.post(view(ts=NOON))
    filled.load()
    filled.age()
    assert run(filled).rollups == 1
    assert rollups_written(filled) == 2, "a reader of an older snapshot may use the first one for an hour"
    filled.age()
    run(filled)
    assert rollups_written(filled) == 1
    assert before.isdisjoint(rollup.folder for rollup in catalog.list_rollups(filled.root, "2026-09"))


def test_taken_lock_of_the_lake_ends_the_work(filled: Site) -> None:
    with write_lock(filled.root, 0), pytest.raises(LakeBusy):
        run(filled)
    assert rollups_written(filled) == 0
