"""Charts in Chromium: labels that do not overlap at any width, and the highlight by pointer and keyboard."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest
from babel import Locale
from playwright.sync_api import Browser, Page

from api.dashboard.charts import time_chart
from api.dashboard.charts.time_chart import Band, Interval, TimeChart, labels
from api.dashboard.web import locale

STATIC = Path(__file__).parents[4] / "api" / "dashboard" / "static"
ENGLISH = Locale("en")
ATTACK = "<img src=x onerror=window.attacked=1>"
OVERLAPS = """() => {
    const boxes = [...document.querySelectorAll("text.time, text.count")]
        .filter(text => getComputedStyle(text).display !== "none").map(text => text.getBoundingClientRect());
    const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    return boxes.flatMap((box, n) => boxes.slice(n + 1).filter(other => overlap(box, other))).length;
}"""
SHOWN = """() => [...document.querySelectorAll("text.time")]
    .filter(text => getComputedStyle(text).display !== "none").length"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield an empty page; fail if a script of it raised an error."""
    errors: list[str] = []
    with browser.new_context(viewport={"width": 900, "height": 600}) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(error.message))
        yield page
    assert errors == []


Rows = Sequence[tuple[str, str, int, int]]
"""Name of each interval in the table and on the axis, its views by people, and its reads by AI."""


def show(page: Page, rows_of: Rows) -> None:
    """Show a chart with its table, the styles and the script of the dashboard."""
    people, ai = (Band(name, name, [row[place] for row in rows_of]) for place, name in ((2, "people"), (3, "ai")))
    chart = TimeChart("Views by day", [Interval(tick) for _, tick, _, _ in rows_of], [people, ai])
    rows = "".join(f"<tr><th>{label.replace('<', '&lt;')}<td>{people}<td>{ai}" for label, _, people, ai in rows_of)
    svg = time_chart.svg(chart, lambda count: locale.compact(count, ENGLISH))
    page.set_content(
        f"""<!doctype html><main><section class="card"><figure class="chart">
        <div class="chart-plot" data-slots="{chart.width}">{svg}</div>
        <details><summary>Numbers</summary><table><thead><tr><th>Time<th>People<th>AI<tbody>{rows}</table></details>
        </figure></section></main>"""
    )
    for name in ("app.css", "charts.css"):
        page.add_style_tag(content=(STATIC / name).read_text())
    page.add_script_tag(content=(STATIC / "chart.js").read_text())


def series(count: int, interval: str) -> Rows:
    """Return intervals from 1 September 2026 on, with counts up to 3 millions."""
    first = date(2026, 9, 1)
    starts = {
        "hour": [f"{first + timedelta(n // 24)}T{n % 24:02}:00:00+00:00" for n in range(count)],
        "day": [str(first + timedelta(n)) for n in range(count)],
        "week": [str(first + timedelta(7 * n)) for n in range(count)],
        "month": [f"{2026 + n // 12}-{n % 12 + 1:02}-01" for n in range(count)],
    }
    names = labels(starts[interval], interval, ENGLISH)
    return [
        (name.label, name.tick, n * 2_000_000 // count, n * 1_000_000 // count) for n, name in enumerate(names, start=1)
    ]


@pytest.mark.long
@pytest.mark.parametrize("interval", ["hour", "day", "week", "month"])
def test_labels_do_not_overlap_at_any_width(page: Page, interval: str) -> None:
    counts = {"hour": (24, 48, 744), "day": (1, 7, 30, 90, 366), "week": (5, 52), "month": (12, 36, 100)}
    for count in counts[interval]:
        show(page, series(count, interval))
        shown = []
        for width in (320, 360, 519, 580, 768, 899, 980, 1_280, 1_920, 3_840):
            page.set_viewport_size({"width": width, "height": 600})
            assert page.evaluate(OVERLAPS) == 0, (count, width)
            assert page.evaluate("document.documentElement.scrollWidth") == width
            shown.append(page.evaluate(SHOWN))
        assert shown == sorted(shown)
        assert shown[0] >= 1


def test_texts_have_the_size_of_the_page_at_every_width(page: Page) -> None:
    show(page, series(30, "day"))
    heights = []
    for width in (320, 1_280, 3_840):
        page.set_viewport_size({"width": width, "height": 600})
        heights.append(page.evaluate("document.querySelector('text.time').getBoundingClientRect().height"))
    assert len(set(heights)) == 1
    assert heights[0] >= 11


def tooltip(page: Page) -> list[str]:
    """Return the lines of the tooltip; empty if it is hidden."""
    text = page.locator(".chart-tooltip").inner_text() if page.locator(".chart-tooltip").is_visible() else ""
    return text.split("\n")


def test_pointer_shows_the_numbers_of_its_interval(page: Page) -> None:
    show(page, [("Monday", "Mo", 5, 1), ("Tuesday", "Tu", 7, 2)])
    box = page.locator(".chart-plot").bounding_box()
    assert box is not None
    assert tooltip(page) == [""]
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 100)
    assert tooltip(page) == ["Tuesday", "People", "7", "AI", "2"]
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 100)
    assert tooltip(page) == ["Monday", "People", "5", "AI", "1"]
    page.mouse.move(0, 0)
    assert tooltip(page) == [""]


def test_touched_interval_shows_its_numbers_until_something_else_is_touched(browser: Browser) -> None:
    with browser.new_context(has_touch=True, viewport={"width": 390, "height": 700}) as context:
        page = context.new_page()
        show(page, [("Monday", "Mo", 5, 1), ("Tuesday", "Tu", 7, 2)])
        box = page.locator(".chart-plot").bounding_box()
        assert box is not None
        left, right, y = box["x"] + box["width"] * 0.25, box["x"] + box["width"] * 0.75, box["y"] + 100
        monday, tuesday = ["Monday", "People", "5", "AI", "1"], ["Tuesday", "People", "7", "AI", "2"]
        page.touchscreen.tap(right, y)
        assert tooltip(page) == tuesday
        page.touchscreen.tap(left, y)
        assert tooltip(page) == monday
        page.touchscreen.tap(left, box["y"] + box["height"] + 150)
        assert tooltip(page) == [""]

        finger = context.new_cdp_session(page)
        for kind, points in (
            ("touchStart", [{"x": left, "y": y}]),
            *(("touchMove", [{"x": left + (right - left) * step / 5, "y": y}]) for step in range(1, 6)),
            ("touchEnd", []),
        ):
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        assert tooltip(page) == tuesday
        # A finger that is not lifted yet, or scrolls, sends none of the events of a mouse, which also hide the numbers.
        outside = [{"x": left, "y": box["y"] + box["height"] + 150}]
        finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": outside})
        assert tooltip(page) == [""]


@pytest.mark.long
def test_arrow_keys_move_and_the_numbers_are_read_out(page: Page) -> None:
    show(page, [(name, "", number, 0) for number, name in enumerate(("one", "two", "three"))])
    spoken = page.locator(".chart-plot [aria-live=polite]")
    page.keyboard.press("Tab")
    read = []
    for key in ("ArrowLeft", "ArrowLeft", "Home", "ArrowLeft", "ArrowRight", "End", "ArrowRight"):
        page.keyboard.press(key)
        read.append(spoken.inner_text())
    assert read == [
        *("three, People 2, AI 0", "two, People 1, AI 0", "one, People 0, AI 0", "one, People 0, AI 0"),
        *("two, People 1, AI 0", "three, People 2, AI 0", "three, People 2, AI 0"),
    ]
    assert tooltip(page)[0] == "three"
    page.keyboard.press("Escape")
    assert tooltip(page) == [""]


@pytest.mark.long
def test_tooltip_is_within_the_page_at_both_ends(page: Page) -> None:
    show(page, [(f"A rather long name of the day {number}", "", 1, 0) for number in range(9)])
    page.set_viewport_size({"width": 360, "height": 600})
    page.locator(".chart-plot").focus()
    for key in ("Home", *["ArrowRight"] * 8):
        page.keyboard.press(key)
        box = page.locator(".chart-tooltip").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360


def test_tooltip_shows_markup_as_text_also_in_a_chart_that_htmx_replaces(page: Page) -> None:
    show(page, [(ATTACK, ATTACK, 1, 0)])
    for _ in range(2):
        page.locator(".chart-plot").focus()
        page.keyboard.press("Home")
        assert tooltip(page)[0] == ATTACK
        assert page.evaluate("window.attacked") is None
        page.evaluate(
            """() => {
                const plot = document.querySelector(".chart-plot"), copy = plot.cloneNode(true);
                copy.removeAttribute("tabindex");
                copy.querySelectorAll("div, p").forEach(each => each.remove());
                plot.replaceWith(copy);
                document.dispatchEvent(new CustomEvent("htmx:after:swap"));
            }"""
        )
