"""A site with beacons and an access log of the same week, with known truth: what each policy counts.

Every visit is in the log. People send a beacon, too. A script with the user agent of a browser, AI agents and bots send
none, except one agent that runs the scripts of pages.
"""

import random
from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.warehouse.site import DAY, NOON, Row, Site, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods, Policy
from warehouse.maintenance import rollups
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Counts, Query

PEOPLE, SCRIPT, MARKDOWN, AI, BROWSING_AI, BOT = 120, 90, 7, 40, 15, 25
"""Page views of the week by people, the script, Markdown readers with a browser's user agent, AI agents, and bots."""
GPTBOT = {"traffic": "ai", "rule": "ai:GPTBot", "agent": "GPTBot", "operator": "OpenAI", "purpose": "training"}
GOOGLEBOT = {"traffic": "bot", "rule": "bot:Googlebot", "agent": "Googlebot"}
QUERY = Query("site", FIRST, None, Filters(), NOON)
TRUTH = (PEOPLE + MARKDOWN, AI + BROWSING_AI, BOT)
EXPECTED: dict[Policy, tuple[int, int, int]] = {
    "all": (2 * PEOPLE + SCRIPT + MARKDOWN, AI + 2 * BROWSING_AI, BOT),
    "beacon_only": (PEOPLE, BROWSING_AI, 0),
    "log_only": (PEOPLE + SCRIPT + MARKDOWN, AI + BROWSING_AI, BOT),
    "beacon_people_log_machines": TRUTH,
}


def week() -> list[Row]:
    chance = random.Random(15)
    rows = []
    for number, columns, has_beacon in (
        (PEOPLE, {}, True),
        (SCRIPT, {}, False),
        (MARKDOWN, {"format": "text/markdown"}, False),
        (AI, GPTBOT, False),
        (BROWSING_AI, GPTBOT, True),
        (BOT, GOOGLEBOT, False),
    ):
        for _ in range(number):
            ts = NOON - chance.randrange(7 * 24 * 3600) * timedelta(seconds=1)
            path = chance.choice(["/", "/a", "/b"])
            logged = chance.choice(["log", "server"])
            rows.append(view(path, ts, source=logged, **columns))
            if has_beacon:
                rows.append(view(path, ts, source="beacon", **{**columns, "format": None}))
    return rows


def prepare(site: Site) -> None:
    """Write the week to files that a rollup counts, to other files, and to the hot log."""
    rows = week()
    site.post(*rows[:300])
    site.load()
    written = rollups.write_due(site.hot, site.root, site.share, (NOON + 30 * DAY).date(), 0, settle_s=0)
    assert written.rows == 300
    site.post(*rows[300:400])
    site.load()
    site.post(*rows[400:])


def counted(site: Site, periods: Periods) -> tuple[int, int, int]:
    """Return people, AI and bots, in which all reports must agree."""
    with closing(site.reports({"site": periods}.__getitem__)) as reports:
        snapshot = reports.take()
        totals = reports.views(snapshot, QUERY, 0, 9).totals
        assert reports.series(snapshot, QUERY, "day", ZoneInfo("UTC"))[0] == totals
        assert reports.series(snapshot, QUERY, "hour", ZoneInfo("Europe/Berlin"))[0] == totals
        for by in ("agent", "source", "path", "format", "verification"):
            assert reports.breakdown(snapshot, QUERY, by, 0, 9).totals == totals
        assert sum(reports.user_agents(snapshot, QUERY, None, 9)["views"].to_pylist()) <= sum(
            (totals.human, totals.ai, totals.bot)
        )
        for report in (
            lambda query: reports.views(snapshot, query, 0, 9).totals,
            lambda query: reports.breakdown(snapshot, query, "agent", 0, 9).totals,
            lambda query: reports.breakdown(snapshot, query, "rule", 0, 9).totals,
            lambda query: reports.series(snapshot, query, "day", ZoneInfo("UTC"))[0],
        ):
            by_path = [report(replace(QUERY, filters=Filters(path=path))) for path in ("/", "/a*", "/b")]
            assert Counts(*(sum(getattr(each, name) for each in by_path) for name in ("human", "ai", "bot"))) == totals
        line = reports.sparklines(snapshot, ["site"], NOON)["site"]
        assert (sum(line.human), sum(line.ai)) == (totals.human, totals.ai)
        return totals.human, totals.ai, totals.bot


@pytest.mark.long
def test_people_from_beacons_and_machines_from_logs_are_the_truth(site: Site) -> None:
    result = {policy: counted(site, (Period(date.min, policy),)) for policy in EXPECTED}
    assert result == EXPECTED
    assert counted(site, ()) == EXPECTED["all"]


@pytest.mark.long
def test_policy_is_applied_from_its_day_on(site: Site) -> None:
    day = (NOON - 3 * DAY).date()
    by_day = Counter[tuple[bool, str]]()
    for row in week():
        is_later = row["ts"].date() >= day
        if not is_later or row["source"] == "beacon":
            by_day[is_later, row["traffic"]] += 1
    expected = tuple(by_day[False, kind] + by_day[True, kind] for kind in ("human", "ai", "bot"))
    assert counted(site, (Period(day, "beacon_only"),)) == expected


def coverage_of(reports: Reports) -> tuple[str, int, int, bool]:
    coverage = reports.source_coverage(reports.take(), "site")
    is_twice = bool(coverage.counted_twice)
    return coverage.policy, coverage.overlap_days, coverage.unbeaconed, is_twice


@pytest.mark.long
def test_coverage_shows_the_policy_the_overlap_and_what_it_leaves_out(site: Site) -> None:
    rows = [row for row in week() if row["traffic"] == "human"]
    days = [
        {row["ts"].date() for row in rows if (row["source"] == "beacon") == is_beacon} for is_beacon in (True, False)
    ]
    both = len(days[0] & days[1])
    with closing(site.reports()) as reports:
        assert coverage_of(reports) == ("all", both, 0, True)
    policy = (Period(date.min, "beacon_people_log_machines"),)
    with closing(site.reports(lambda project: policy)) as reports:
        assert coverage_of(reports) == ("beacon_people_log_machines", both, PEOPLE + SCRIPT, False)
