"""The first day on which AI read a path is that of all time, in rollups, files and hot rows."""

from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings

from tests.rounds import rounds
from tests.warehouse.report.lake import STATES, Lake, settle
from tests.warehouse.report.laws import generated
from tests.warehouse.report.laws.generated import PATHS, PROJECTS
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

AI = {"traffic": "ai", "agent": "GPTBot"}
TODAY = Query("site", NOON, None, Filters(agent="Googlebot"), NOON)
MICROSECOND = timedelta(microseconds=1)


@STATES
def test_first_ai_day_is_that_of_the_first_view_by_ai(site: Site, reports: Reports, state: str) -> None:
    first = datetime(2026, 8, 1, tzinfo=UTC)
    site.post(
        view("/people", first),
        view("/both", first),
        view("/both", first + DAY - MICROSECOND, **AI),
        view("/both", first + DAY, **AI),
        view("/both", first - DAY, project_id="another", **AI),
        view("/later", first + 7 * DAY),
        view("/later", NOON - DAY, **AI),
        view("/later", NOON, **AI),
        view("/bot", first, traffic="bot"),
    )
    settle(site, state)
    paths = ["/people", "/both", "/later", "/bot", "/none"]
    assert reports.first_ai_days(reports.take(), TODAY, paths) == {
        "/both": date(2026, 8, 1),
        "/later": date(2026, 9, 14),
    }
    site.post(view("/people", NOON, **AI), view("/later", first + DAY, **AI), view("/new", NOON, **AI))
    assert reports.first_ai_days(reports.take(), TODAY, [*paths, "/new"]) == {
        "/both": date(2026, 8, 1),
        "/later": date(2026, 8, 2),
        "/people": date(2026, 9, 15),
        "/new": date(2026, 9, 15),
    }


@pytest.mark.long
def test_first_day_in_a_rollup_of_invalid_days_is_read_from_files(site: Site, reports: Reports) -> None:
    """Check a rollup whose first day was compacted: its files are not those of the snapshot."""
    site.post(view("/a", NOON - 2 * DAY, **AI), view("/a", NOON, **AI), view("/b", NOON - DAY, **AI))
    site.load()
    settle(site, "rollups")
    site.post(view("/a", NOON - 2 * DAY), view("/a", NOON - 3 * DAY, **AI))
    site.load()
    site.compact(0)
    assert reports.first_ai_days(reports.take(), TODAY, ["/a", "/b"]) == {
        "/a": date(2026, 9, 12),
        "/b": date(2026, 9, 14),
    }


@pytest.mark.long
@settings(max_examples=rounds(60))
@given(chance=generated.chances)
def test_first_days_are_those_of_a_plain_list(lake: Lake, chance: Random) -> None:
    project, paths = chance.choice(PROJECTS), chance.sample([*PATHS, "/none"], chance.randrange(12))
    query = Query(project, FIRST, None, Filters(), generated.NOW)
    first: dict[str, date] = {}
    for row in lake.rows:
        if row["project_id"] == project and row["traffic"] == "ai" and row["path"] in paths:
            first[row["path"]] = min(row["ts"].date(), first.get(row["path"], date.max))
    assert lake.reports.first_ai_days(lake.reports.take(), query, paths) == first
