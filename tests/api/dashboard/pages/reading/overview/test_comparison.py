"""The comparison of the overview with the period before it."""

from datetime import date
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.days import before
from tests.api.dashboard.pages.reading.overview.overview_page import HITS, hit, numbers, page_of
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import PROJECT
from warehouse.control import source_policies

UNKNOWN, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


@pytest.fixture(scope="module")
def dashboard(overview_site: Dashboard) -> Dashboard:
    return overview_site


def test_change_is_that_of_the_previous_period(dashboard: Dashboard, viewer: TestClient) -> None:
    earlier, later = (
        dashboard.get_report(f"series?dateFrom={before(first)}&dateTo={before(first - 10)}")["totals"]["human"]
        for first in (20, 10)
    )
    page = page_of(viewer, from_=10, to=1)
    sign = "+" if later > earlier else MINUS if later < earlier else ""
    assert f"Views by people {later} {sign}{abs(later - earlier) / earlier:.0%}" in page.text


@pytest.mark.long
def test_previous_period_that_was_not_counted_in_full_has_no_change(viewer: TestClient) -> None:
    assert "compared with" not in page_of(viewer).text
    assert "compared with" in page_of(viewer, period="7d").text


def test_comparison_adds_the_totals_of_the_previous_period(dashboard: Dashboard, viewer: TestClient) -> None:
    series = dashboard.get_report(f"series?dateFrom={before(20)}&dateTo={before(10)}")["series"]
    page = page_of(viewer, from_=10, to=1, compare="previous")
    before_of = [numbers(row[2::2]) for row in page.rows("Numbers of this chart")]
    assert before_of == [[each["human"], each["ai"]] for each in series]


@pytest.mark.long
def test_comparison_has_the_change_of_each_row(dashboard: Dashboard, viewer: TestClient) -> None:
    page = page_of(viewer, from_=10, to=1, compare="previous")
    for heading, report, key in (
        ("Top pages", "views?", "total"),
        ("AI operators", "breakdown?by=operator&traffic=ai&", "ai"),
        ("Sources", "breakdown?by=source&", "total"),
        ("Referrers", "breakdown?by=referrerHost&traffic=human&", "human"),
    ):
        earlier, later = (
            dashboard.get_report(f"{report}dateFrom={before(first)}&dateTo={before(first - 10)}&limit=100")
            for first in (20, 10)
        )
        counts = [
            {row.get("path", row.get("value")): row[key] for row in each.get("views", each.get("rows"))}
            for each in (earlier, later)
        ]
        names = {"Your server": "server", "Direct or unknown": None}
        at = page.tables[heading][0].index("Change")
        shown = {names.get(row[0], row[0]): row[at] for row in page.rows(heading) if len(row) > at}
        assert shown
        for name, cell in shown.items():
            was, now = (each.get(name, 0) for each in counts)
            sign = "+" if now > was else MINUS if now < was else ""
            assert cell == (f"{sign}{abs(now - was) / was:.0%}" if was else "new") + f" from {was}"


def test_rows_have_no_change_if_the_previous_period_was_not_counted_in_full(viewer: TestClient) -> None:
    page = page_of(viewer, compare="previous")
    for heading, column in (("Top pages", 4), ("AI operators", 2), ("Referrers", 2)):
        assert {row[column] for row in page.rows(heading)} == {UNKNOWN}
    assert "Change" not in page_of(viewer, period="7d").tables["Top pages"][0]


@pytest.mark.long
def test_previous_period_without_a_count_is_named_instead_of_its_line(viewer: TestClient) -> None:
    for period, is_counted in (("7d", True), ("90d", False)):
        text = page_of(viewer, period=period, compare="previous").text
        assert ("Previous period" in text) is is_counted, period
        assert ("No change is shown for people, AI and other bots: counting began on" in text) is not is_counted, period


@pytest.mark.long
def test_periods_under_policies_that_count_other_sources_are_not_compared(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as own:
        own.post_hits(*map(hit, range(HITS)))
        days: dict[str, str | int] = {"from_": 10, "to": 1, "compare": "previous"}
        assert "Previous period" in page_of(own.visitor("viewer"), **days).text
        source_policies.put(own.engine, PROJECT, "beacon_only", date.fromisoformat(before(0)))  # after the period
        assert "Previous period" in page_of(own.visitor("viewer"), **days).text
        source_policies.put(own.engine, PROJECT, "beacon_only", date.min)
        source_policies.put(own.engine, PROJECT, "all", date.fromisoformat(before(10)))
        page = page_of(own.visitor("viewer"), **days)
        assert "No change is shown for people, AI and other bots: the source policy counts other sources" in page.text
        assert {row[4] for row in page.rows("Top pages")} == {UNKNOWN}
