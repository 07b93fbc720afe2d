"""Workers reclassify hits as this process does, also if a worker is killed or a day changes."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.warehouse.batch.tasks import DyingProcess
from tests.warehouse.maintenance.reclassification.rules import RULES
from tests.warehouse.maintenance.reclassification.test_reclassify import (
    OLD,
    assert_stored,
    old,
    preview,
    reclassified,
    store,
)
from tests.warehouse.site import DAY, NOON, Site
from warehouse.batch.items import OpenWorkers
from warehouse.batch.processes import ChildProcess, this_process
from warehouse.maintenance import compact
from warehouse.maintenance.reclassification.in_workers import reclassify_in_workers
from warehouse.maintenance.reclassification.reclassify import Reclassified


def run(site: Site, open_workers: OpenWorkers = this_process) -> Reclassified:
    return reclassify_in_workers(site.hot, site.root, site.database, RULES, 0, open_workers)


@pytest.mark.long
def test_hits_and_result_are_those_of_this_process(site: Site) -> None:
    store(site, OLD)
    site.post(*OLD)
    expected = preview(site)
    assert run(site) == expected
    assert_stored(site, reclassified(2 * OLD))
    assert run(site).hits == 0


@pytest.mark.long
def test_reclassification_is_exact_if_a_worker_is_killed_after_it_wrote_its_files(site: Site, tmp_path: Path) -> None:
    store(site, OLD)
    expected = preview(site)
    workers = [DyingProcess(tmp_path / "died"), ChildProcess()]
    try:
        assert run(site, lambda days: nullcontext(workers)) == expected
    finally:
        for worker in workers:
            worker.close()
    assert (tmp_path / "died").exists()
    assert_stored(site, reclassified(OLD))


@pytest.mark.long
def test_hits_that_arrive_meanwhile_are_reclassified_too(site: Site) -> None:
    """The new hit is in the hot log when the workers start, and is loaded under the lock before the first commit."""
    store(site, OLD)
    new = old("/new", "ClaudeBot/2")

    def open_workers(days: int) -> nullcontext[list[ChildProcess]]:
        site.post(new)
        return nullcontext([worker])

    worker = ChildProcess()
    try:
        assert run(site, open_workers).hits == len(OLD) + 1
    finally:
        worker.close()
    assert_stored(site, reclassified([*OLD, new]))


@pytest.mark.long
def test_files_that_another_process_compacted_and_deleted_are_not_read(site: Site) -> None:
    rows = [old("/a", "GPTBot/1", ts=NOON + day * DAY) for day in range(4) for _ in range(2)]
    store(site, rows)

    def compact_and_vacuum(done: int, total: int) -> None:
        site.compact()
        site.age()
        compact.vacuum(site.hot, site.root, 0)

    reclassify_in_workers(site.hot, site.root, site.database, RULES, 0, this_process, compact_and_vacuum)
    assert_stored(site, reclassified(rows))
