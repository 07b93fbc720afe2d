"""Geometry of sparklines."""

from xml.etree import ElementTree as ET

from api.dashboard.charts import sparkline
from warehouse.report.results import Counts

Rects = list[tuple[str | None, ...]]


def rects(*intervals: Counts | None) -> Rects:
    """Return the class, x, y and height of each rectangle but the baseline."""
    _, *drawn = ET.fromstring(str(sparkline.svg(intervals, "Views"))).iter("rect")
    return [tuple(map(each.get, ("class", "x", "y", "height"))) for each in drawn]


def test_ai_is_above_people_and_bots_are_left_out() -> None:
    assert rects(Counts(3, 1, 50), None, None, Counts(0, 2)) == [
        ("unmeasured", "1", "0", "32"),
        ("people", "0.1", "8", "24"),
        ("ai", "0.1", "0", "8"),
        ("ai", "3.1", "16", "16"),
    ]


def test_zeros_draw_the_baseline_only() -> None:
    assert rects(Counts()) == rects() == []


def test_huge_counts_are_drawn() -> None:
    assert rects(Counts(2**62, 2**62))[1] == ("ai", "0.1", "0", "16")


def test_title_is_escaped() -> None:
    root = ET.fromstring(str(sparkline.svg([], "<b>&")))
    assert root.findtext("title") == "<b>&"
