"""The sources under the chart, from reports that are lists."""

from datetime import datetime

from api.dashboard.pages.reading.measured import Measured, Shown
from api.dashboard.pages.reading.panels import views
from tests.api.dashboard.pages.reading.measuring import NOW as NOW_DAY
from tests.api.dashboard.pages.reading.measuring import day
from tests.api.dashboard.pages.reading.panels.listed import Listed, View, counted
from warehouse.report.results import Counts

SOURCES: Listed = [("beacon", Counts(7, 2, 0)), ("log", Counts(1, 0, 3))]


def sources(view: View, measured: Measured) -> dict[str, tuple[Shown, int | None, datetime | None]]:
    rows = views.sources(view, measured)  # type: ignore[arg-type]
    assert [row.link for row in rows] == [f"{{'source': '{name}'}}" for name in measured.selected]
    return {row.name: (row.shown, row.before, row.source and row.source.last_hit) for row in rows}


def test_source_has_no_number_of_readers_that_it_does_not_see() -> None:
    assert sources(View(SOURCES), counted(beacon=1, log=1)) == {
        "Website script": (Shown(7, 2, None), None, day(28)),  # an AI agent can run the script
        "Your server": (Shown(None, None, None), None, None),
        "Access logs": (Shown(1, 0, 3), None, day(28)),
    }
    by_policy = counted(beacon=1, log=1, policy="beacon_people_log_machines")
    assert sources(View([("beacon", Counts())]), by_policy)["Access logs"][0] == Shown(None, 0, None)


def test_source_that_begins_after_the_period_has_no_number() -> None:
    shown = sources(View([]), counted(beacon=20, log=19))
    assert (shown["Website script"][0], shown["Access logs"][0]) == (Shown(None, None, None), Shown(0, 0, None))


def test_source_that_fell_silent_before_the_period_has_no_number() -> None:
    shown = sources(View([], []), counted(log=1, silent=10))
    assert shown["Access logs"] == (Shown(None, None, None), None, day(NOW_DAY))
    assert sources(View([]), counted(log=1, silent=11))["Access logs"][0] == Shown(0, 0, None)


def test_source_has_its_views_in_the_previous_period_if_it_began_before_that() -> None:
    before: Listed = [("beacon", Counts(20, 30, 40)), ("log", Counts(1, 2, 3))]
    shown = sources(View(SOURCES, before), counted(beacon=5, log=6))
    assert [before for _, before, _ in shown.values()] == [50, None, None]
    shown = sources(View(SOURCES, before[:1]), counted(beacon=5, log=5))
    assert [before for _, before, _ in shown.values()] == [50, None, 0]
