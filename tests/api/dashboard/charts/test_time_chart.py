"""Geometry and markup of time charts, with expected values computed by hand."""

from xml.etree import ElementTree as ET

import pytest

from api.dashboard.charts.time_chart import HEIGHT, Interval, Mark, TimeChart, svg
from warehouse.report.results import Counts


def drawing(*counts: Counts | None, **more: object) -> ET.Element:
    """Return the parsed chart of intervals named a, b, c ..."""
    intervals = [Interval(f"Interval {chr(97 + n)}", chr(97 + n), each) for n, each in enumerate(counts)]
    return parsed(TimeChart("main", "Title", "Description", **{"intervals": intervals, **more}))  # type: ignore[arg-type]


def parsed(chart: TimeChart) -> ET.Element:
    text = str(svg(chart, "{:,}".format))
    assert "style=" not in text
    return ET.fromstring(text)


def paths(root: ET.Element) -> dict[str, str]:
    return {path.attrib["class"]: path.attrib["d"] for path in root.iter("path")}


def texts(root: ET.Element, name: str) -> list[tuple[str, str | None]]:
    """Return the horizontal position and the text of each label of a class."""
    return [(each.attrib["x"], each.text) for each in root.iter("text") if name in each.attrib["class"].split()]


def test_two_stacks() -> None:
    root = drawing(Counts(20, 10, 10), Counts(0, 5, 0))

    # The axis ends at 40; 10 views are 60 pixels.
    assert [(each.attrib["y"], each.text) for each in root.iter("text") if each.attrib["class"] == "count"] == [
        ("240", "0"),
        ("180", "10"),
        ("120", "20"),
        ("60", "30"),
        ("0", "40"),
    ]
    assert paths(root) == {
        # The part of a bar that a lower series covers is not visible.
        "bot": "M0.1 240V0h0.8V240zM1.1 240V210h0.8V240z",
        "ai": "M0.1 240V60h0.8V240zM1.1 240V210h0.8V240z",
        "people": "M0.1 240V120h0.8V240z",
    }
    assert list(paths(root)) == ["bot", "ai", "people"]
    assert texts(root, "time") == [("25%", "a"), ("75%", "b")]
    nested = root.find("g/svg")
    assert nested is not None
    assert nested.attrib["viewBox"] == f"0 0 2 {HEIGHT}"


def test_zeros_draw_no_bar_and_an_axis_up_to_one() -> None:
    root = drawing(Counts(), Counts())
    assert paths(root) == {}
    assert [text for _, text in texts(root, "count")] == ["0", "1"]
    assert list(root.iter("rect")) == []


def test_no_interval_draws_an_empty_axis() -> None:
    root = drawing()
    assert paths(root) == {}
    assert texts(root, "time") == []


def test_one_interval_takes_one_of_the_slots() -> None:
    root = drawing(Counts(1), slots=24)
    assert paths(root) == {"people": "M0.1 240V0h0.8V240z"}
    assert texts(root, "time") == [("2.08%", "a")]


def test_huge_counts_are_drawn_exactly() -> None:
    root = drawing(Counts(10**18, 10**18, 0))
    assert paths(root) == {"ai": "M0.1 240V0h0.8V240z", "people": "M0.1 240V120h0.8V240z"}
    assert texts(root, "count")[-1][1] == "2,000,000,000,000,000,000"


def test_unmeasured_intervals_have_an_area_and_no_bar() -> None:
    root = drawing(None, None, Counts(1), None)
    assert paths(root) == {"people": "M2.1 240V0h0.8V240z"}
    assert [(each.attrib["x"], each.attrib["width"]) for each in root.iter("rect")] == [("0%", "50%"), ("75%", "25%")]


def test_partial_interval_has_a_class_of_its_own() -> None:
    whole, partial = Interval("a", "a", Counts(2)), Interval("b", "b", Counts(1, 1), is_partial=True)
    assert paths(drawing(intervals=[whole, partial])) == {
        "ai partial": "M1.1 240V0h0.8V240z",
        "people": "M0.1 240V0h0.8V240z",
        "people partial": "M1.1 240V120h0.8V240z",
    }


def test_previous_period_is_a_line_that_raises_the_axis_and_has_gaps() -> None:
    root = drawing(Counts(1), Counts(1), Counts(1), Counts(1), previous=[2, 4, None, 0, 9])
    assert paths(root)["previous"] == "M0.5 120l1-120M3.5 240"  # the fifth interval is outside of the plot
    assert paths(root)["people"].startswith("M0.1 240V180h0.8V240z")


def test_previous_period_beyond_the_plot_does_not_raise_the_axis() -> None:
    assert texts(drawing(Counts(1), previous=[1, 1_000]), "count")[-1][1] == "1"


def test_marks_are_above_the_plot_on_the_side_with_more_space() -> None:
    root = drawing(Counts(1), Counts(1), marks=[Mark(0.5, "Early"), Mark(2, "Late")])
    marks = [each for each in root.iter("text") if "medium" in each.attrib["class"]]
    assert [(each.text, each.attrib["class"], each.attrib["x"], each.attrib["y"]) for each in marks[:2]] == [
        ("Early", "mark medium begins", "25%", "-20"),
        ("Late", "mark medium ends", "100%", "-5"),
    ]
    lines = [each.attrib for each in root.iter("line") if each.attrib["class"] in ("mark", "mark medium")]
    assert [(each["x1"], each["y1"], each["y2"]) for each in lines] == [
        ("25%", "-15", "240"),
        ("25%", "-30", "-15"),
        ("100%", "0", "240"),
        ("100%", "-15", "0"),
    ]
    assert root.attrib["height"] == "296"  # 30 for the marks, 240 for the plot and 26 for the time axis


def test_marks_of_a_narrow_plot_begin_at_its_left_edge_with_a_line_to_the_mark() -> None:
    root = drawing(Counts(1), Counts(1), marks=[Mark(0.5, "Early"), Mark(2, "Late")])
    assert texts(root, "narrow") == [("-44", "Early"), ("-44", "Late")]
    lines = [each.attrib for each in root.iter("line") if each.attrib["class"] == "mark narrow"]
    assert [(each["x1"], each["x2"], each["y1"], each["y2"]) for each in lines] == [
        ("0", "25%", "-18", "-18"),
        ("0", "100%", "-3", "-3"),
    ]


@pytest.mark.parametrize(
    ("count", "any_width", "medium", "wide"), [(3, 1, 1, 1), (12, 3, 3, 6), (13, 2, 2, 3), (1_000, 3, 3, 6)]
)
def test_time_labels_have_three_levels(count: int, any_width: int, medium: int, wide: int) -> None:
    root = drawing(*[Counts()] * count)
    assert [len(texts(root, level)) for level in ("any", "medium", "wide")] == [any_width, medium, wide]


def test_unfinished_day_has_as_few_labels_as_a_whole_day() -> None:
    assert [text for _, text in texts(drawing(*[Counts()] * 5, slots=24), "time")] == ["a", "c", "e"]


def test_intervals_without_a_tick_have_no_label() -> None:
    intervals = [Interval("a", "", Counts()), Interval("b", "b", Counts()), Interval("c", "", Counts())]
    assert texts(drawing(intervals=intervals), "time") == [("50%", "b")]


def test_many_intervals_are_one_outline_without_gaps() -> None:
    root = drawing(*[Counts(1)] * 148, None, Counts(0, 1))
    assert paths(root) == {
        "ai": "M0 240v-240h148v240h1v-240h1V240z",
        "people": "M0 240v-240h148v240h2V240z",
    }


def test_texts_are_escaped() -> None:
    attack = "\"><script>alert('x')</script>&"
    chart = TimeChart("main", attack, attack, [Interval(attack, attack, Counts(1))], marks=[Mark(0, attack)])

    text = str(svg(chart, lambda _: attack))

    assert "<script" not in text
    root = ET.fromstring(text)
    assert [each.text for each in (*root.iter("title"), *root.iter("desc"), *root.iter("text"))] == [attack] * 7


def test_name_and_description_are_referenced() -> None:
    root = drawing(Counts(1))
    assert root.attrib["role"] == "img"
    assert {each.attrib["id"] for each in (*root.iter("title"), *root.iter("desc"))} == {
        root.attrib["aria-labelledby"],
        root.attrib["aria-describedby"],
    }
