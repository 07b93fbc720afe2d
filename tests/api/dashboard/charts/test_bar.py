"""Geometry of the bars behind the rows of a table."""

from xml.etree import ElementTree as ET

from api.dashboard.charts import bar
from warehouse.report.results import Counts


def rects(counts: Counts, largest: int) -> list[tuple[str, str, str]]:
    root = ET.fromstring(str(bar.svg(counts, largest)))
    return [(each.attrib["class"], each.get("x", "0"), each.attrib["width"]) for each in root.iter("rect")]


def test_series_are_beside_each_other() -> None:
    assert rects(Counts(5, 3, 2), 20) == [("people", "0%", "25%"), ("ai", "25%", "15%"), ("bot", "40%", "10%")]


def test_series_without_views_has_no_bar() -> None:
    assert rects(Counts(0, 1, 0), 3) == [("ai", "0%", "33.33%")]


def test_zeros_have_no_bar() -> None:
    assert rects(Counts(), 0) == []
    assert rects(Counts(), 5) == []


def test_parts_of_one_number_fill_the_bar() -> None:
    text = str(bar.parts((("good", 1), ("open", 0), ("bad", 3)), 4))
    assert text == (
        '<svg class="parts" aria-hidden="true"><rect class="good" x="0%" width="25%"/>'
        '<rect class="bad" x="25%" width="75%"/></svg>'
    )
