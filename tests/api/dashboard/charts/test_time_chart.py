"""Geometry and markup of time charts, with expected values computed by hand."""

import itertools
import re
from collections.abc import Sequence
from datetime import date, timedelta
from xml.etree import ElementTree as ET

import pytest
from babel import Locale
from hypothesis import given
from hypothesis import strategies as st

from api.dashboard.charts.time_chart import STEPS_MAX, Band, Interval, TimeChart, labels, round_ticks, svg
from api.dashboard.web.assets import FOLDER

Counts = Sequence[int | None]
ENGLISH, GERMAN = Locale("en", "GB"), Locale("de")


def people(*counts: int | None, **more: object) -> ET.Element:
    """Return the parsed chart of views by people in intervals named a, b, c ..."""
    previous = more.pop("previous", ())
    return drawing(Band("People", "people", counts, previous), **more)  # type: ignore[arg-type]


def drawing(*bands: Band, **more: object) -> ET.Element:
    intervals = [Interval(chr(97 + n)) for n, _ in enumerate(bands[0].counts)]
    return parsed(TimeChart("Description", **{"intervals": intervals, "bands": bands, **more}))  # type: ignore[arg-type]


def parsed(chart: TimeChart) -> ET.Element:
    text = str(svg(chart, "{:,}".format))
    assert "style=" not in text
    return ET.fromstring(text)


def rects(root: ET.Element, name: str) -> list[tuple[str, str, str, str]]:
    """Return x, width, y and height of each rectangle of a class."""
    return [
        (each.attrib["x"], each.attrib["width"], each.attrib["y"], each.attrib["height"])
        for each in root.iter("rect")
        if each.attrib["class"] == name
    ]


def texts(root: ET.Element, name: str) -> list[tuple[str, str | None]]:
    """Return the horizontal position and the text of each label of a class."""
    return [(each.attrib["x"], each.text) for each in root.iter("text") if name in each.attrib["class"].split()]


def test_bars_of_one_band() -> None:
    root = people(40, 10)
    # The axis ends at 40; 10 views are 60 pixels.
    ticks = [(each.attrib["y"], each.text) for each in root.iter("text") if each.attrib["class"] == "count"]
    assert ticks == [("240.0", "0"), ("180.0", "10"), ("120.0", "20"), ("60.0", "30"), ("0.0", "40")]
    assert rects(root, "people") == [("0.1", "0.8", "0", "240"), ("1.1", "0.8", "180", "60")]
    assert texts(root, "time") == [("25%", "a"), ("75%", "b")]
    assert root.attrib["height"] == "292"


def test_each_band_has_its_own_axis_and_the_same_intervals() -> None:
    root = drawing(Band("People", "people", [2_000, 0]), Band("AI", "ai", [1, 2]))
    assert [group.attrib["transform"] for group in root.iter("g")] == ["translate(0 26)", "translate(0 172)"]
    assert texts(root, "band") == [("6", "People"), ("6", "AI")]
    assert rects(root, "people") == [("0.1", "0.8", "0", "120")]
    assert rects(root, "ai") == [("0.1", "0.8", "60", "60"), ("1.1", "0.8", "0", "120")]


@pytest.mark.parametrize("counts", [(), (0, 0)])
def test_zeros_draw_no_bar_and_an_axis_up_to_one(counts: Counts) -> None:
    root = people(*counts)
    assert list(root.iter("rect")) == []
    assert [text for _, text in texts(root, "count")] == ["0", "1"]


def test_one_interval_takes_one_of_the_slots() -> None:
    root = people(1, slots=20)
    assert rects(root, "people") == [("0.1", "0.8", "0", "240")]
    assert [each.attrib["viewBox"] for each in root.findall("g/svg")] == ["0 0 20 240"]
    assert texts(root, "time") == [("2.5%", "a")]


def test_huge_counts_are_drawn() -> None:
    root = people(2 * 10**18)
    assert rects(root, "people")[0][2:] == ("0", "240")
    assert texts(root, "count")[-1][1] == "2,000,000,000,000,000,000"


def test_unmeasured_intervals_have_an_area_and_no_bar() -> None:
    root = people(None, None, 1, None)
    assert rects(root, "unmeasured") == [("0", "2", "0", "240"), ("3", "1", "0", "240")]
    assert rects(root, "people") == [("2.1", "0.8", "0", "240")]


def test_edge_of_an_unmeasured_area_has_a_contrast_of_3_to_1() -> None:
    """Check light and dark colours by the formula of WCAG 2.2: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""

    def luminance(color: str) -> float:
        parts = [
            int(each, 16) / 255
            for each in re.findall("..", color if len(color) == 6 else "".join(c + c for c in color))
        ]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    css = (FOLDER / "app.css").read_text(encoding="utf-8")
    edges, surfaces = (re.findall(f"--{name}: #([0-9a-f]+);", css) for name in ("unmeasured-edge", "surface"))
    assert len(edges) == len(surfaces) == 2
    for edge, surface in zip(edges, surfaces, strict=True):
        low, high = sorted(map(luminance, (edge, surface)))
        assert (high + 0.05) / (low + 0.05) >= 3


def test_band_of_which_nothing_was_measured_has_no_numbers() -> None:
    assert texts(people(None, None), "count") == []
    assert texts(people(None, None, previous=(None, 3)), "count") != []


def test_partial_interval_has_a_class_of_its_own() -> None:
    root = people(2, 1, intervals=[Interval("a"), Interval("b", is_partial=True)])
    assert (len(rects(root, "people")), rects(root, "people partial")) == (1, [("1.1", "0.8", "120", "120")])


def test_previous_period_is_a_line_across_each_interval_and_raises_the_axis() -> None:
    root = people(1, 1, 1, 1, previous=[2, 4, None, 0, 9])
    (line,) = root.iter("path")
    assert line.attrib["d"] == "M0 120h1M1 0h1M3 240h1"  # the fifth interval is outside of the plot
    assert line.attrib["class"] == "previous"
    assert rects(root, "people")[0][3] == "60"
    (line,) = people(*[1] * 60, previous=[2, 4, None, 0]).iter("path")
    assert (line.attrib["class"], line.attrib["d"]) == ("previous joined", "M0 120h1V0h1M3 240h1")


def test_marks_are_numbered_and_share_a_text_at_one_position() -> None:
    root = people(1, 1, marks=[0.5, 2, 0.5])
    assert texts(root, "mark") == [("25%", "1, 3"), ("100%", "2")]
    assert [each.attrib["x1"] for each in root.iter("line") if each.attrib["class"] == "mark"] == ["25%", "100%"]


@pytest.mark.parametrize(
    ("count", "any_width", "medium", "wide"), [(3, 1, 1, 1), (12, 3, 3, 6), (13, 2, 2, 3), (1_000, 3, 3, 6)]
)
def test_time_labels_have_three_levels(count: int, any_width: int, medium: int, wide: int) -> None:
    root = people(*[0] * count)
    assert [len(texts(root, level)) for level in ("any", "medium", "wide")] == [any_width, medium, wide]


def test_unfinished_day_has_as_few_labels_as_a_whole_day() -> None:
    assert [text for _, text in texts(people(*[0] * 5, slots=24), "time")] == ["a", "c", "e"]


def test_intervals_without_a_tick_have_no_label() -> None:
    assert texts(people(0, 0, intervals=[Interval(""), Interval("b")]), "time") == [("75%", "b")]


def test_many_intervals_have_no_gap() -> None:
    assert rects(people(*[1] * 200), "people")[:2] == [("0", "1", "0", "240"), ("1", "1", "0", "240")]


def test_texts_are_escaped() -> None:
    attack = "\"><script>alert('x')</script>&"
    chart = TimeChart(attack, [Interval(attack)], [Band(attack, "people", [1]), Band(attack, "ai", [1])])
    text = str(svg(chart, lambda _: attack))
    assert "<script" not in text
    root = ET.fromstring(text)
    assert [root.attrib["aria-label"], *(each.text for each in root.iter("text"))] == [attack] * 8


def test_ticks() -> None:
    ticks = {
        0: (0, 1), 1: (0, 1), 2: (0, 1, 2), 4: (0, 1, 2, 3, 4), 5: (0, 2, 4, 6), 9: (0, 5, 10),
        117: (0, 50, 100, 150), 801: (0, 500, 1_000), 10**18: (0, 5 * 10**17, 10**18),
    }  # fmt: skip
    assert {maximum: round_ticks(maximum) for maximum in ticks} == ticks


@given(st.integers(0, 2**63))
def test_ticks_begin_at_zero_reach_the_maximum_and_are_evenly_spaced(maximum: int) -> None:
    values = round_ticks(maximum)
    assert values[0] == 0
    assert values[-2] < max(maximum, 1) <= values[-1]
    assert len({after - before for before, after in itertools.pairwise(values)}) == 1
    assert 2 <= len(values) <= STEPS_MAX + 1


def days(count: int) -> list[str]:
    return [(date(2026, 9, 1) + timedelta(number)).isoformat() for number in range(count)]


def hours(count: int) -> list[str]:
    return [f"{day}T{hour:02}:00:00+02:00" for day in days(count // 24) for hour in range(24)]


def test_days() -> None:
    first, second = labels(days(2), "day", ENGLISH)
    assert (first.label, first.tick) == ("Tue, 1 Sept 2026", "1 Sept")
    assert second.tick == "2 Sept"


def test_days_in_german() -> None:
    assert labels(days(1), "day", GERMAN)[0].label == "Di., 1. Sept. 2026"


def test_many_days_are_named_at_the_first_of_a_month() -> None:
    ticks = [each.tick for each in labels(days(93), "day", ENGLISH)]
    assert [tick for tick in ticks if tick] == ["Sept 2026", "Oct 2026", "Nov 2026", "Dec 2026"]
    assert ticks[30] == "Oct 2026"


def test_hours_of_a_day_are_named_by_the_time_and_midnight_by_the_day() -> None:
    hour_labels = labels(hours(24), "hour", ENGLISH)
    assert [each.tick for each in hour_labels[:3]] == ["1 Sept", "01:00", "02:00"]
    assert hour_labels[13].label == "1 Sept 2026, 13:00"


def test_many_hours_are_named_at_midnight_only() -> None:
    ticks = [each.tick for each in labels(hours(72), "hour", ENGLISH)]
    assert [tick for tick in ticks if tick] == ["1 Sept", "2 Sept", "3 Sept"]


def test_weeks_and_months() -> None:
    assert labels(["2026-08-31"], "week", ENGLISH)[0].label == "Week of 31 Aug 2026"
    assert labels(["2026-09-01"], "month", ENGLISH)[0].tick == "Sept 2026"
