"""Geometry of sparklines."""

from xml.etree import ElementTree as ET

from api.dashboard.charts import sparkline
from warehouse.report.results import Counts


def paths(*intervals: Counts | None) -> dict[str, str]:
    root = ET.fromstring(str(sparkline.svg(intervals, "Views")))
    return {path.attrib["class"]: path.attrib["d"] for path in root.iter("path")}


def test_ai_is_above_people_and_bots_are_left_out() -> None:
    assert paths(Counts(3, 1, 50), None, Counts(0, 2)) == {
        "baseline": "M0 32H3",
        "people": "M0.1 32V8h.8V32z",
        "ai": "M0.1 8V0h.8V8zM2.1 32V16h.8V32z",
    }


def test_zeros_and_unmeasured_days_draw_the_baseline_only() -> None:
    assert paths(Counts(), None) == {"baseline": "M0 32H2"}
    assert paths() == {"baseline": "M0 32H1"}


def test_huge_counts_are_drawn() -> None:
    assert paths(Counts(2**62, 2**62))["ai"] == "M0.1 16V0h.8V16z"


def test_title_is_escaped() -> None:
    root = ET.fromstring(str(sparkline.svg([], "<b>&")))
    assert root.findtext("title") == "<b>&"
