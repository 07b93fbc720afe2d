"""A load makes reports read no rollup again, and a new rollup of a month none of another month."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tests.warehouse.site import DAY, Site, view
from warehouse.columns.filters import Filters
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.rollups import coverage, writer

AUGUST, SEPTEMBER, OCTOBER = (datetime(2026, month, 1, tzinfo=UTC) for month in (8, 9, 10))
BOTH = Query("site", AUGUST, OCTOBER, Filters(), OCTOBER)
GPTBOT = {"traffic": "ai", "agent": "GPTBot", "rule": "ai:GPTBot"}


@pytest.fixture
def site(site: Site) -> Site:
    """Return a lake with the rollups of two months."""
    site.post(view("/a", AUGUST), view("/b", AUGUST, **GPTBOT), view("/b", SEPTEMBER))
    site.load()
    for month in (AUGUST, SEPTEMBER):
        write_rollup(site, month)
    return site


@pytest.fixture
def reports(site: Site) -> Iterator[Reports]:
    """Yield reports that have read both months."""
    with closing(site.reports()) as reports:
        assert answers(reports) == ([("/b", 2), ("/a", 1)], [(None, 2), ("GPTBot", 1)], [2, 1])
        yield reports


def write_rollup(site: Site, month: datetime) -> None:
    files = [file for file in site.state(HITS_TABLE).files if file.partition.startswith(f"{month:%Y-%m}")]
    writer.write(site.root, site.database, f"{month:%Y-%m}", files)


def damage_rollups(site: Site, month: datetime) -> None:
    """Overwrite the files of the rollups of a month. Their sizes stay: a reader does not know before it reads them."""
    for rollup in coverage.list_rollups(site.root, f"{month:%Y-%m}"):
        for name in coverage.PARQUET:
            path = rollup.folder / name
            path.write_bytes(bytes(path.stat().st_size))


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


def views_since(reports: Reports, start: datetime) -> dict[str, int]:
    """Return the totals by path in a part of both months, for which the days of a month are read."""
    rows = reports.views(reports.take(), replace(BOTH, start=start), 0, 9).rows.to_pylist()
    return {row["path"]: row["total"] for row in rows}


def test_load_makes_reports_read_no_rollup_again(site: Site, reports: Reports) -> None:
    assert views_since(reports, AUGUST + DAY) == {"/b": 1}
    damage_rollups(site, AUGUST)
    damage_rollups(site, SEPTEMBER)
    for number in range(1, 4):
        site.post(view("/c", SEPTEMBER))
        site.load()
        paths, agents, months = answers(reports)
        assert dict(paths) == {"/a": 1, "/b": 2, "/c": number}
        assert views_since(reports, AUGUST + DAY) == {"/b": 1, "/c": number}
        assert agents == [(None, 2 + number), ("GPTBot", 1)]
        assert months == [2, 1 + number]


def test_new_rollup_of_a_month_makes_reports_read_none_of_another_month(site: Site, reports: Reports) -> None:
    damage_rollups(site, AUGUST)
    site.post(view("/0", SEPTEMBER), view("/c", SEPTEMBER))  # /0 changes the ids of all other paths
    site.load()
    write_rollup(site, SEPTEMBER)
    assert answers(reports) == (
        [("/b", 2), ("/0", 1), ("/a", 1), ("/c", 1)],
        [(None, 4), ("GPTBot", 1)],
        [2, 3],
    )


def test_damaged_rollup_is_not_answered_from(site: Site) -> None:
    """Check that the other tests can fail: a process that reads the files finds the damage."""
    damage_rollups(site, AUGUST)
    with closing(site.reports()) as reports, pytest.raises(pa.ArrowInvalid, match="Parquet"):
        answers(reports)
