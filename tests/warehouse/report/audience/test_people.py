"""Evidence that a person was there: of each visitor and day, on rows that wait, in files, and in rollups."""

from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta

import pytest

from tests.warehouse.site import CACHE_BYTES, DAY, NOON, TODAY, Row, Site, loads, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Policy
from warehouse.query.moment import Moment
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.report.audience.people import People
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.tables import ASSET_LOADS_TABLE, HITS_TABLE, Spec

HOUR = timedelta(hours=1)
OWN = {"referrer_host": "example.org", "channel": None}
"""Columns of a view within the site."""
LOGGED = loads(visitor=99)
"""A load by another visitor, which shows that the log has assets."""
HALF_HOUR = Query("site", NOON - HOUR, NOON + HOUR / 2, Filters(), NOON + DAY)
QUERY = Query("site", NOON - 2 * DAY, NOON + 2 * DAY, Filters(), NOON + 2 * DAY)


def linked(referrer: str, **columns: str | None) -> list[Row]:
    """Return two views of a visitor, of which the second one has a referrer."""
    return [view("/a", visitor=1), view("/b", NOON + HOUR, visitor=1, referrer=referrer, **{**OWN, **columns})]


EVIDENCE: dict[str, tuple[list[Row], list[Row], str]] = {
    "a beacon after the view": ([view(visitor=1), view(ts=NOON + HOUR, visitor=1, source="beacon")], [], "script"),
    "a beacon of another day": ([view(visitor=1), view(ts=NOON + DAY, visitor=1, source="beacon")], [LOGGED], "none"),
    "an asset": ([view(visitor=1)], [loads(visitor=1)], "assets"),
    "an asset of another project": ([view(visitor=1)], [LOGGED, loads(visitor=1, project="another")], "none"),
    "an asset of another day": ([view(visitor=1)], [LOGGED, loads(visitor=1, day=TODAY - DAY)], "none"),
    "an asset of a project whose log has only one": ([view(visitor=1) for _ in range(99)], [loads(1)], "not_measured"),
    "an asset among 99 views": ([view(visitor=1) for _ in range(98)], [loads(1)], "assets"),
    "nothing": ([view(visitor=1)], [LOGGED], "none"),
    "no asset in the log": ([view(visitor=1)], [], "not_measured"),
    "no visitor": ([view(visitor=None)], [LOGGED, loads(visitor=None)], "not_measured"),
    "a link": (linked("https://example.org/a/index.html?q=/b#c"), [LOGGED], "navigation"),
    "a link of the first page": ([view("/", visitor=1), *linked("https://example.org")[1:]], [LOGGED], "navigation"),
    "a link of another site": (linked("https://example.org/a", channel="Referral"), [LOGGED], "none"),
    "a link of a page that was read later": (
        [view("/b", visitor=1, referrer="https://example.org/a", **OWN), view("/a", NOON + HOUR, visitor=1)],
        [LOGGED],
        "none",
    ),
    "a link of the page itself": (linked("https://example.org/b"), [LOGGED], "none"),
}


@pytest.mark.long
def test_evidence_is_of_the_visitor_and_day(site: Site, reports: Reports) -> None:
    """Store each case in two projects of its own."""

    def of_case(rows: list[Row], number: int) -> list[Row]:
        return [{**row, "project_id": f"{row['project_id']} {number}"} for row in rows]

    for number, (views, of_assets, _) in enumerate(EVIDENCE.values()):
        beside = [view(visitor=1, project_id="another"), view(traffic="ai", visitor=1)]
        site.post(*of_case([*views, *beside], number))
        site.post_loads(*of_case(of_assets, number))
    for _ in range(2):  # of the rows that wait, then of files
        snapshot = reports.take()
        for number, (name, (_, _, expected)) in enumerate(EVIDENCE.items()):
            query = replace(HALF_HOUR, project=f"site {number}")
            rows = reports.breakdown(snapshot, query, "evidence", 0, 10).rows.to_pylist()
            assert {row["value"] for row in rows} == {expected, None}, name
        site.load()


def test_load_during_a_report_loses_no_evidence(site: Site) -> None:
    class Loaded(SnapshotReader):
        def take(self, as_of: Moment | None = None, spec: Spec = HITS_TABLE) -> Snapshot:
            taken = super().take(as_of, spec)
            if spec is ASSET_LOADS_TABLE:
                site.load()
            return taken

    site.post(view(visitor=1))
    site.post_loads(loads(1))
    with closing(Loaded(site.hot_log, site.root)) as reader:
        reports = Reports(reader, site.root, site.spill, CACHE_BYTES)
        assert reports.people(reports.take(), QUERY) == People(1)
    assert site.waiting() == 0


@pytest.mark.parametrize("policy", ["all", "confirmed_people"])
def test_people_without_evidence_are_counted_beside(site: Site, policy: Policy) -> None:
    """The policy counts the others, also AI without evidence, and views whose evidence is not measured."""
    site.post(view("/a", visitor=1), view("/a", visitor=2), view("/b", visitor=2), view("/b"), view(traffic="ai"))
    site.post_loads(loads(1))
    reports = site.reports(lambda project: (Period(date.min, policy),))
    snapshot, hidden = reports.take(), 2 if policy == "confirmed_people" else 0
    assert reports.people(snapshot, QUERY) == People(1, 2, 1)
    page = reports.views(snapshot, QUERY, 0, 10)
    assert (page.totals.human, page.totals.ai) == (4 - hidden, 1)
    (visitors,) = reports.visitor_counts(snapshot, QUERY).to_pylist()
    assert (visitors["human"], visitors["visit_views"]) == (2 - hidden // 2, 3 - hidden)
    assert reports.breakdown(snapshot, QUERY, "path", 0, 10).totals.human == 4 - hidden
