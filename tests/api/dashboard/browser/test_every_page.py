"""Each page of the dashboard in Chromium: its errors, size and width, its accessibility, and its use by keyboard."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, ViewportSize

from api.dashboard.pages_table import PAGES
from tests.api.dashboard.browser.axe import AXE, COLOR_RULES, VENDOR, violations
from tests.api.dashboard.browser.sample import LONG, Sample
from tests.api.dashboard.browser.test_wrong_input import TESTED
from tests.api.dashboard.browser.visiting import Visit, visiting
from tests.processes.running import PROJECT

PAGE_BYTES_MAX = 250_000
"""Maximum size of a page with its assets, without compression."""
WINDOW = ViewportSize(width=1_280, height=800)
TABS_MAX = 400
FRAGMENTS = ("/live", "/setup/arrivals")
"""Ends of the paths of parts of pages, which htmx requests."""
UPDATES = re.compile(r"/(live|setup/arrivals)(\?|$)")
"""Addresses of FRAGMENTS."""
FILES = (".csv", ".parquet")
"""Ends of the paths of files."""
SHOWN = [page for page in PAGES if page.method == "GET" and not page.path.endswith((*FRAGMENTS, *FILES))]
EACH_PAGE = pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.night] * ("{share}/" in page.path), id=page.path) for page in SHOWN]
)
"""Pages of a share link but the overview are opened at night: they have the templates of the project's pages."""
FIELDS = """() => [...document.querySelectorAll("main form[method=post]")].flatMap(form => [...form.elements])
    .filter(each => each.name && each.type !== "hidden" && !each.hidden).map(each => each.name)"""
FOCUSABLE = """() => {
    window.focusable = [...document.querySelectorAll('*')].filter(each => each.tabIndex >= 0 && !each.disabled
        && each.checkVisibility({visibilityProperty: true}) && !each.matches('body, html'));
    return window.focusable.map(each => each.type === 'radio' ? `radio ${each.name}` : each.outerHTML.slice(0, 150));
}"""
FOCUSED = """() => {
    const each = document.activeElement;
    const style = getComputedStyle(each);
    const hasOutline = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    const isInside = !each.matches(':focus');  // the calendar button of a date field, which the browser marks itself
    return [window.focusable.indexOf(each), isInside || hasOutline || style.boxShadow !== 'none'];
}"""

HIDDEN_CELLS = """width => [...document.querySelectorAll('td.number, td.text')].filter(cell => {
    const box = cell.getBoundingClientRect(), isText = cell.matches('.text');
    return cell.checkVisibility() && (isText ? cell.textContent.length > 20 && box.width < 100 : box.right > width);
}).map(cell => `${Math.round(cell.getBoundingClientRect().width)} ${cell.outerHTML.slice(0, 150)}`)"""
"""Cells of tables with a number that is beyond the window, or with a long text in a narrow column."""


@pytest.fixture(scope="module")
def shown(browser: Browser, filled: Sample) -> Iterator[Visit]:
    with visiting(browser, filled.url, None, viewport=WINDOW, color_scheme="light") as visit:
        visit.page.context.route(UPDATES, lambda route: route.fulfill(status=204))
        yield visit


@pytest.fixture(scope="module")
def plain(browser: Browser, filled: Sample) -> Iterator[Visit]:
    """Yield a page without JavaScript, which the tests of this module share."""
    with visiting(browser, filled.url, None, java_script_enabled=False) as visit:
        yield visit


@pytest.fixture(scope="module")
def scripted(browser: Browser, filled: Sample) -> Iterator[Visit]:
    """Yield a page with JavaScript, which the tests of this module share."""
    with visiting(browser, filled.url, None) as visit:
        yield visit


@pytest.mark.long
@EACH_PAGE
def test_page_is_accessible_fits_each_window_and_works_by_keyboard(shown: Visit, filled: Sample, page: Any) -> None:
    """Make all checks after one load of the page. Updates are answered with 204, which changes nothing."""
    shown.become(filled.session_for(page))
    shown.open(filled.address(page))
    assert_is_accessible_in_light_and_dark(shown)
    assert_is_not_wider_than_the_window(shown)
    if not page.path.startswith("/docs/"):  # hundreds of links, of the same kinds as on /docs
        assert_tab_reaches_every_control_and_its_focus_is_visible(shown)
    shown.page.wait_for_load_state("networkidle")  # last, because by now the network has been idle for long enough
    assert_is_complete(shown)
    ids = shown.page.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert sorted(ids) == sorted(set(ids))


@EACH_PAGE
def test_page_without_javascript_has_no_error_and_only_tested_fields(plain: Visit, filled: Sample, page: Any) -> None:
    plain.become(filled.session_for(page))
    plain.open(filled.address(page))
    assert_is_complete(plain)
    fields = set() if page.path == "/" else {(page.path, name) for name in plain.page.evaluate(FIELDS)}
    assert fields <= TESTED


def assert_is_complete(visit: Visit) -> None:
    assert visit.status == 200
    assert visit.page.locator("h1").count() == 1
    assert visit.page.locator("script:not([src]), [onerror], img[src=x]").count() == 0  # sample.ATTACK
    assert (visit.errors, visit.foreign) == ([], [])
    assert 1_000 < visit.size_bytes() < PAGE_BYTES_MAX


def assert_is_accessible_in_light_and_dark(visit: Visit) -> None:
    assert violations(visit.page) == []
    visit.page.emulate_media(color_scheme="dark")
    assert violations(visit.page, COLOR_RULES) == []
    visit.page.emulate_media(color_scheme="light")


@pytest.mark.night
@pytest.mark.parametrize(
    "page", [page for page in SHOWN if re.findall(r"{\w+", page.path) == ["{project"]], ids=lambda page: page.path
)
def test_page_of_an_empty_project_has_no_error_and_no_violation(scripted: Visit, filled: Sample, page: Any) -> None:
    scripted.become(filled.session)
    scripted.open(filled.empty_address(page))
    assert (scripted.status, scripted.errors) == (200, [])
    assert violations(scripted.page) == []
    assert_is_not_wider_than_the_window(scripted)


@pytest.mark.long
def test_page_of_an_error_has_no_violation_and_fits_each_window(scripted: Visit, filled: Sample) -> None:
    paths = {"?period=LONG": 400, "/page?path=/LONG*": 400, "/ai/agents/LONG": 404, "/jobs/LONG": 404}
    for path, status in paths.items():
        scripted.become(filled.session)
        scripted.open(f"/projects/{PROJECT}{path.replace('LONG', LONG)}")
        assert scripted.status == status
        assert_is_accessible_in_light_and_dark(scripted)
        assert_is_not_wider_than_the_window(scripted)


@pytest.mark.long
def test_axe_finds_violations_and_a_blocked_style_is_an_error(scripted: Visit) -> None:
    """Check the check: a control without a name, a text without contrast, and what the CSP blocks."""
    scripted.become(None)
    scripted.open("/sign-in")
    scripted.page.evaluate("document.querySelector('label').remove()")
    scripted.page.evaluate("document.querySelector('h1').style.color = '#eee'")
    assert {"label", "color-contrast"} <= {id for id, _, _ in violations(scripted.page)}
    assert {id for id, _, _ in violations(scripted.page, COLOR_RULES)} == {"color-contrast"}
    assert scripted.errors == []
    scripted.page.evaluate("document.body.setAttribute('style', 'color: red')")
    assert "Content Security Policy" in " ".join(scripted.errors)


def test_page_that_crashes_fails_no_later_test(scripted: Visit) -> None:
    """Check the check."""
    with scripted.page.expect_event("crash", timeout=10_000), suppress(Error):
        scripted.page.goto("chrome://crash", timeout=5_000)
    scripted.become(None)
    scripted.open("/sign-in")
    assert (scripted.status, scripted.errors) == (200, [])


@pytest.mark.long
def test_button_of_a_period_without_views_has_padding(scripted: Visit, filled: Sample) -> None:
    scripted.become(filled.session)
    for path in ("/ai", "/errors"):
        scripted.open(f"/projects/{PROJECT}{path}?from=2020-01-01&to=2020-01-02")
        button = scripted.page.get_by_role("link", name="Show all time")
        assert button.evaluate("element => parseFloat(getComputedStyle(element).paddingLeft)") >= 8


def assert_is_not_wider_than_the_window(visit: Visit) -> None:
    for width in (320, 360, 768, 1_400, 3_840):
        visit.page.set_viewport_size({"width": width, "height": 800})
        assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= width
        assert visit.page.evaluate(HIDDEN_CELLS, width) == []
    visit.page.set_viewport_size(WINDOW)


def assert_tab_reaches_every_control_and_its_focus_is_visible(visit: Visit) -> None:
    visit.page.evaluate("document.activeElement.blur()")  # some pages focus their first field
    controls = visit.page.evaluate(FOCUSABLE)
    reached, unmarked = set(), set()
    for _ in range(TABS_MAX):
        visit.page.keyboard.press("Tab")
        place, is_marked = visit.page.evaluate(FOCUSED)
        if place < 0 and len(reached) >= len(set(controls)):
            break
        if place >= 0:
            reached.add(controls[place])
            unmarked |= set() if is_marked else {controls[place]}
        if len(reached) == len(set(controls)):
            break
    assert set(controls) - reached == set()
    assert unmarked == set()


def test_axe_is_the_unmodified_file_of_its_package() -> None:
    [(name, digest)] = re.findall(
        r"^\| `([^`]+)` .* `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE
    )
    assert (AXE.name, hashlib.sha256(AXE.read_bytes()).hexdigest()) == (name, digest)
