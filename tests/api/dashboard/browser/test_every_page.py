"""Each page of the dashboard in Chromium: its errors, size and width, its accessibility, and its use by keyboard."""

import hashlib
import re
from typing import Any

import pytest
from playwright.sync_api import Browser

from api.dashboard.pages_table import PAGES
from tests.api.dashboard.browser.axe import AXE, VENDOR, violations
from tests.api.dashboard.browser.sample import Sample
from tests.api.dashboard.browser.visiting import visiting

PAGE_BYTES_MAX = 150_000
TABS_MAX = 400
FRAGMENTS = ("/live", "/setup/arrivals")
"""Ends of the paths of parts of pages, which htmx requests."""
FILES = (".csv", ".parquet")
"""Ends of the paths of files."""
SHOWN = [page for page in PAGES if page.method == "GET" and not page.path.endswith((*FRAGMENTS, *FILES))]
EACH_PAGE = pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.path)
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


@EACH_PAGE
@pytest.mark.parametrize("with_javascript", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_page_has_no_error_asks_no_other_host_and_is_small(
    browser: Browser, filled: Sample, page: Any, with_javascript: bool
) -> None:
    session = filled.session_for(page)
    with visiting(browser, filled.url, session, java_script_enabled=with_javascript) as visit:
        response = visit.page.goto(filled.url + filled.address(page))
        visit.page.wait_for_load_state("networkidle")
        assert response is not None
        assert response.status == 200
        assert visit.page.locator("h1").count() == 1
        assert visit.page.locator("script:not([src]), [onerror], img[src=x]").count() == 0  # sample.ATTACK
        assert (visit.errors, visit.foreign) == ([], [])
        assert 1_000 < visit.size_bytes() < PAGE_BYTES_MAX


@EACH_PAGE
def test_axe_finds_no_violation_in_light_and_dark(browser: Browser, filled: Sample, page: Any) -> None:
    with visiting(browser, filled.url, filled.session_for(page), color_scheme="light") as visit:
        visit.open(filled.address(page))
        assert violations(visit.page) == []
        visit.page.emulate_media(color_scheme="dark")
        assert violations(visit.page) == []


@pytest.mark.parametrize(
    "page", [page for page in SHOWN if re.findall(r"{\w+", page.path) == ["{project"]], ids=lambda page: page.path
)
def test_page_of_an_empty_project_has_no_error_and_no_violation(browser: Browser, filled: Sample, page: Any) -> None:
    with visiting(browser, filled.url, filled.session) as visit:
        assert visit.open(filled.empty_address(page)).status in (200, 404)
        assert [error for error in visit.errors if "404" not in error] == []
        assert violations(visit.page) == []


def test_axe_finds_violations(browser: Browser, filled: Sample) -> None:
    """Check the check: a control without a name, and a text without contrast."""
    with visiting(browser, filled.url, None) as visit:
        visit.open("/sign-in")
        visit.page.evaluate("document.querySelector('label').remove()")
        visit.page.evaluate("document.querySelector('h1').style.color = '#eee'")
        assert {"label", "color-contrast"} <= {id for id, _, _ in violations(visit.page)}


def test_blocked_style_is_an_error(browser: Browser, filled: Sample) -> None:
    """Check the check: what the Content-Security-Policy blocks is in the console."""
    with visiting(browser, filled.url, None) as visit:
        visit.open("/sign-in")
        visit.page.evaluate("document.body.setAttribute('style', 'color: red')")
        assert "Content Security Policy" in " ".join(visit.errors)


@EACH_PAGE
def test_page_is_not_wider_than_the_window(browser: Browser, filled: Sample, page: Any) -> None:
    with visiting(browser, filled.url, filled.session_for(page)) as visit:
        visit.open(filled.address(page))
        for width in (360, 1400, 3840):
            visit.page.set_viewport_size({"width": width, "height": 800})
            assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= width


@EACH_PAGE
def test_tab_reaches_every_control_and_its_focus_is_visible(browser: Browser, filled: Sample, page: Any) -> None:
    with visiting(browser, filled.url, filled.session_for(page)) as visit:
        visit.open(filled.address(page))
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
