"""Visitors whose views are counted one by one: how many views, of which project."""

from contextlib import closing
from datetime import datetime

import pytest

from tests.warehouse.report.lake import settle
from tests.warehouse.site import DAY, NOON, Row, Site, view
from warehouse.columns.filters import Filters
from warehouse.errors import TooManyViews
from warehouse.query import engine
from warehouse.report.audience import visitors
from warehouse.report.results import Query

BY_BROWSER = Filters(browser="Firefox", country="DE")
"""Filters that no rollup counts together."""


def read(project: str, day: datetime = NOON, count: int = 40) -> list[Row]:
    of_reader = {"browser": "Firefox", "country": "DE", "project_id": project}
    return [view(ts=day, visitor=number, **of_reader) for number in range(count)]


@pytest.mark.parametrize("state", ["loaded", "rollups"])
def test_limit_counts_the_views_of_the_project_alone(site: Site, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    site.post(*read("site"), *read("site", NOON + DAY), *read("neighbour", count=200))
    settle(site, state)
    monkeypatch.setattr(visitors, "PART_ROWS", 50)
    monkeypatch.setattr(visitors, "VIEWS_MAX", 100)
    with closing(site.reports()) as reports:
        snapshot = reports.take()

        def people(project: str) -> int:
            query = Query(project, NOON - DAY, NOON + 2 * DAY, BY_BROWSER, NOON + 2 * DAY)
            return sum(reports.visitor_counts(snapshot, query)["human"].to_pylist())

        assert people("site") == 80
        with pytest.raises(TooManyViews, match="the range has 200 views of the project, .* by browser and country"):
            people("neighbour")


@pytest.mark.parametrize("fast_views", [79, 80])
def test_report_of_many_views_that_are_counted_one_by_one_is_slow(
    site: Site, monkeypatch: pytest.MonkeyPatch, fast_views: int
) -> None:
    site.post(*read("site"), *read("site", NOON + DAY))
    site.load()
    monkeypatch.setattr(visitors, "PART_ROWS", 50)
    monkeypatch.setattr(visitors, "FAST_VIEWS_MAX", fast_views)
    query = Query("site", NOON - DAY, NOON + 2 * DAY, BY_BROWSER, NOON + 2 * DAY)
    caller = engine.Caller(accepts_slow=True)
    token = engine.CALLER.set(caller)
    with closing(site.reports()) as reports:
        assert reports.visitor_counts(reports.take(), query)["human"].to_pylist() == [80]
    engine.CALLER.reset(token)
    assert caller.is_slow is (fast_views < 80)
