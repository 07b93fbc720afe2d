"""The overview and its parts in Chromium, with and without JavaScript."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.dashboard.browsing import BOTH, opened
from tests.api.dashboard.site import FIREFOX
from tests.processes.running import Running, new_key
from warehouse.database.pool import Pool

PROJECT = "overview"
REFRESH_MS = 30_000


@pytest.fixture(scope="module")
def key(service: Running) -> str:
    """Return a key of a project with 12 paths: the path n has n views by people, and /3 has 20 by AI."""
    key = new_key(service.data, PROJECT)
    people = [{"path": f"/{number}", "userAgent": FIREFOX} for number in range(1, 13) for _ in range(number)]
    send(service, key, *people, *[{"path": "/3", "userAgent": "GPTBot/1.3"}] * 20)
    return key


def send(service: Running, key: str, *hits: dict[str, str]) -> None:
    url, headers = f"{service.url}/v1/analytics/{PROJECT}/hits", {"Authorization": f"Bearer {key}"}
    assert httpx.post(url, json=hits, headers=headers).status_code == 202


@pytest.fixture
def overview(browser: Browser, service: Running, engine: Pool, key: str, *, with_javascript: bool) -> Iterator[Page]:
    with opened(browser, service, engine, with_javascript=with_javascript) as page:
        page.goto(f"{service.url}/projects/{PROJECT}")
        yield page


def first_page(page: Page) -> str:
    """Return the path in the first row of the table of pages."""
    return page.locator("#pages tbody tr").first.locator("a").inner_text()


@pytest.mark.long
@BOTH
def test_pages_are_sorted_paged_and_found(overview: Page, with_javascript: bool) -> None:
    assert first_page(overview) == "/3"
    overview.get_by_role("link", name="People", exact=True).last.click()
    expect(overview.locator("#pages th[aria-sort]")).to_have_text("People")
    assert first_page(overview) == "/12"
    overview.get_by_role("link", name="Next").click()
    expect(overview.locator("#pages tbody tr")).to_have_count(2)
    assert re.search(r"sort=people&page=2|page=2&sort=people", overview.url)
    overview.go_back()
    expect(overview.locator("#pages tbody tr")).to_have_count(10)
    overview.get_by_label("Search pages").fill("/1")
    overview.get_by_role("button", name="Find").click()
    expect(overview.locator("#pages tbody tr")).to_have_count(4)
    expect(overview.get_by_role("link", name="Remove the filter")).to_have_text(re.compile(r"Page:\s+/1\*"))


@pytest.mark.long
@BOTH
def test_filter_file_and_period_are_chosen_by_clicks(overview: Page, with_javascript: bool) -> None:
    overview.get_by_role("link", name="OpenAI").click()
    expect(overview.locator("#pages tbody tr")).to_have_count(1)
    overview.get_by_role("link", name="Remove the filter Operator: OpenAI").click()
    expect(overview.locator("#pages tbody tr")).to_have_count(10)
    assert "operator" not in overview.url

    overview.locator("summary", has_text="Download").click()
    with overview.expect_download() as download:
        overview.get_by_role("link", name="Pages as CSV").click()
    assert re.fullmatch(rf"{PROJECT}-pages-[0-9-]{{10}}(_[0-9-]{{10}})?\.csv", download.value.suggested_filename)
    assert download.value.path().read_text().splitlines()[1].startswith("/3,3,20,23")

    overview.goto(overview.url)
    overview.locator("summary", has_text="Since the first view").click()
    overview.get_by_role("link", name="Today").click()
    expect(overview.locator("summary", has_text="Today")).to_be_visible()
    overview.locator("summary", has_text="Today").click()
    overview.get_by_label("First day").fill("2026-01-01")
    overview.get_by_label("Last day").fill("2026-01-31")
    overview.get_by_label("Time zone").fill("Asia/Tokyo")
    overview.get_by_role("button", name="Show").click()
    expect(overview.get_by_text("Time zone: Asia/Tokyo")).to_be_visible()
    expect(overview.get_by_text("Counting began on")).to_be_visible()


@pytest.mark.long
@pytest.mark.parametrize("with_javascript", [True])
def test_keys_open_other_periods(overview: Page, with_javascript: bool) -> None:
    for key, name in {"d": "Today", "w": "This week", "y": "This year", "m": "This month"}.items():
        overview.keyboard.press(key)
        expect(overview.locator("summary", has_text=name)).to_be_visible()
    overview.keyboard.press("ArrowLeft")
    expect(overview.get_by_role("link", name="Next period")).to_be_visible()
    overview.keyboard.press("ArrowRight")
    expect(overview.get_by_role("link", name="Next period")).to_have_count(0)
    overview.get_by_label("Search pages").press("d")
    expect(overview.get_by_label("Search pages")).to_have_value("d")


@pytest.mark.long
@pytest.mark.parametrize("with_javascript", [True])
def test_live_count_is_refreshed_without_a_reload(
    browser: Browser, service: Running, engine: Pool, key: str, with_javascript: bool
) -> None:
    with opened(browser, service, engine, with_javascript=True) as page:
        page.clock.install()
        page.goto(f"{service.url}/projects/{PROJECT}")
        live = page.locator("#live b").first
        before = int(live.inner_text())
        page.evaluate("document.body.dataset.same = 'page'")
        send(service, key, {"path": "/1", "userAgent": FIREFOX})
        for number in (1, 2):
            page.clock.fast_forward(REFRESH_MS + 1_000)
            expect(live).to_have_text(str(before + number))
            send(service, key, {"path": "/1", "userAgent": FIREFOX})
        assert page.evaluate("document.body.dataset.same") == "page"


@pytest.mark.parametrize("with_javascript", [True])
def test_sort_replaces_only_the_table_and_a_menu_closes_with_escape_and_a_click_elsewhere(
    overview: Page, with_javascript: bool
) -> None:
    overview.evaluate("document.body.dataset.same = 'page'")
    overview.get_by_role("link", name="People", exact=True).last.click()
    expect(overview.locator("#pages th[aria-sort]")).to_have_text("People")
    assert overview.evaluate("document.body.dataset.same") == "page"

    menu = overview.locator("summary", has_text="Download")
    inside = overview.get_by_role("link", name="Pages as CSV")
    for close in (lambda: overview.keyboard.press("Escape"), overview.locator("h2").first.click):
        menu.click()
        expect(inside).to_be_visible()
        close()
        expect(inside).to_be_hidden()


@pytest.mark.long
def test_page_with_an_open_menu_is_not_wider_than_the_window(
    browser: Browser, service: Running, engine: Pool, key: str
) -> None:
    with opened(browser, service, engine, with_javascript=True) as page:
        for query in ("compare=previous", "period=7d"):
            page.goto(f"{service.url}/projects/{PROJECT}?{query}")
            for width in (320, 360, 768, 1_400, 3_840):
                page.set_viewport_size({"width": width, "height": 800})
                for summary in page.locator("details > summary").all():
                    summary.click()
                    assert page.evaluate("document.documentElement.scrollWidth") == width
                    page.keyboard.press("Escape")  # an open menu covers other summaries
