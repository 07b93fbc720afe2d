"""A load and a new rollup change the next answers, also those of reports that are in the cache."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import duckdb
import pytest

from tests.warehouse.report.lake import write_rollups
from tests.warehouse.site import Site, view
from warehouse.columns.filters import Filters
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.rollups import catalog

AUGUST, SEPTEMBER, OCTOBER = (datetime(2026, month, 1, tzinfo=UTC) for month in (8, 9, 10))
BOTH = Query("site", AUGUST, OCTOBER, Filters(), OCTOBER)
GPTBOT = {"traffic": "ai", "agent": "GPTBot", "rule": "ai:GPTBot"}


def prepare(site: Site) -> None:
    """Write the rollups of two months, and their ranking."""
    site.post(view("/a", AUGUST), view("/b", AUGUST, **GPTBOT), view("/b", SEPTEMBER))
    site.load()
    write_rollups(site, ["2026-08", "2026-09"])


@pytest.fixture
def reports(site: Site) -> Iterator[Reports]:
    """Yield reports that have read both months."""
    with closing(site.reports()) as reports:
        assert answers(reports) == ([("/b", 2), ("/a", 1)], [(None, 2), ("GPTBot", 1)], [2, 1])
        yield reports


def answers(reports: Reports) -> tuple[list[tuple[str, int]], list[tuple[str | None, int]], list[int]]:
    """Return the totals of both months by path, by agent and by month."""
    snapshot = reports.take()
    paths = reports.views(snapshot, BOTH, 0, 9).rows.to_pylist()
    agents = reports.breakdown(snapshot, BOTH, "agent", 0, 9).rows.to_pylist()
    months = reports.series(snapshot, BOTH, "month", ZoneInfo("UTC"))[1].to_pylist()
    return (
        [(row["path"], row["total"]) for row in paths],
        [(row["value"], row["total"]) for row in agents],
        [row["total"] for row in months],
    )


@pytest.mark.long
def test_load_and_new_rollup_are_in_the_next_answers(site: Site, reports: Reports) -> None:
    for number in range(1, 4):
        site.post(view("/c", SEPTEMBER))
        if number > 1:
            site.load()
        if number == 3:
            write_rollups(site, ["2026-09"])
        paths, agents, months = answers(reports)
        assert dict(paths) == {"/a": 1, "/b": 2, "/c": number}
        assert agents == [(None, 2 + number), ("GPTBot", 1)]
        assert months == [2, 1 + number]


@pytest.mark.long
def test_rollup_that_was_written_for_no_new_hits_changes_no_answer(site: Site, reports: Reports) -> None:
    before = answers(reports)
    write_rollups(site, ["2026-08"])
    assert answers(reports) == before


@pytest.mark.long
def test_damaged_rollup_is_an_error_and_not_a_wrong_answer(site: Site) -> None:
    """Overwrite the files of a rollup. Their sizes stay: a reader does not know before it reads them."""
    for rollup in catalog.list_rollups(site.root, "2026-08"):
        for name in catalog.PARQUET:
            path = rollup.folder / name
            path.write_bytes(bytes(path.stat().st_size))
    with closing(site.reports()) as reports, pytest.raises(duckdb.Error, match="parquet"):
        reports.breakdown(reports.take(), BOTH, "agent", 0, 9)
