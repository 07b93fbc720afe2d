"""Sparklines and last hits of several projects count rollups, files and hot rows."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest
from hypothesis import given, settings

from tests.rounds import rounds
from tests.warehouse.report.lake import STATES, Lake, settle
from tests.warehouse.report.laws import generated
from tests.warehouse.report.laws.generated import PROJECTS
from tests.warehouse.site import DAY, NOON, Site, view
from warehouse.report.audience.activity import DAYS
from warehouse.report.reports import Reports

AI, BOT = {"traffic": "ai", "agent": "GPTBot"}, {"traffic": "bot"}
LAST_MICROSECOND = timedelta(days=1) - timedelta(microseconds=1)


@STATES
def test_sparkline_has_people_and_ai_of_the_last_thirty_days(site: Site, reports: Reports, state: str) -> None:
    first = NOON - 29 * DAY - timedelta(hours=12)
    site.post(
        view(ts=first),
        view(ts=first - timedelta(microseconds=1)),
        view(ts=first + LAST_MICROSECOND, **AI),
        view(ts=NOON, **AI),
        view(ts=NOON + timedelta(hours=12)),
        view(ts=NOON, project_id="another"),
        view(ts=NOON, **BOT),
    )
    settle(site, state)
    lines = reports.sparklines(reports.take(), ["site", "another", "none"], NOON)
    assert set(lines) == {"site", "another", "none"}
    assert lines["site"].days == tuple(date(2026, 8, 17) + number * DAY for number in range(30))
    assert (lines["site"].human, lines["site"].ai) == ((1, *(0,) * 29), (1, *(0,) * 28, 1))
    assert (lines["another"].human, lines["another"].ai) == ((*(0,) * 29, 1), (0,) * 30)
    assert (lines["none"].human, lines["none"].ai) == ((0,) * 30, (0,) * 30)


@STATES
def test_last_hit_of_each_project_is_that_of_any_reader(site: Site, reports: Reports, state: str) -> None:
    last = datetime(2026, 8, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    site.post(view(ts=last - DAY), view(ts=last, **BOT), view(ts=NOON, project_id="another"))
    settle(site, state)
    assert reports.last_hits(reports.take(), ["site", "another", "none"]) == {
        "site": last,
        "another": NOON,
        "none": None,
    }
    site.post(view(ts=last - 7 * DAY), view(ts=NOON + DAY, project_id="another"))
    assert reports.last_hits(reports.take(), ["site", "another"]) == {"site": last, "another": NOON + DAY}


def test_list_without_a_project_is_empty(reports: Reports) -> None:
    assert reports.sparklines(reports.take(), [], NOON) == {}
    assert reports.last_hits(reports.take(), []) == {}


@pytest.mark.long
@settings(max_examples=rounds(50))
@given(chance=generated.chances)
def test_activity_is_that_of_a_plain_count(lake: Lake, chance: Random) -> None:
    projects, now = chance.sample(PROJECTS, chance.randrange(4)), chance.choice(generated.DAYS) + DAY / 2
    snapshot = lake.reports.take()
    views = Counter((row["project_id"], row["ts"].date(), row["traffic"]) for row in lake.rows)
    for project, line in lake.reports.sparklines(snapshot, projects, now).items():
        days = [now.date() - number * DAY for number in reversed(range(DAYS))]
        assert list(line.days) == days
        assert list(line.human) == [views[project, day, "human"] for day in days]
        assert list(line.ai) == [views[project, day, "ai"] for day in days]
    assert lake.reports.last_hits(snapshot, projects) == {
        project: max((row["ts"] for row in lake.rows if row["project_id"] == project), default=None)
        for project in projects
    }
