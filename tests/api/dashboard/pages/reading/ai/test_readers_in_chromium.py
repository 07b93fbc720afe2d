"""AI readers and Pages in a narrow window of Chromium: each row has all columns, in two lines."""

from collections.abc import Iterator
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import Browser, Page

from tests.api.dashboard.browsing import opened
from tests.api.dashboard.site import FIREFOX
from tests.processes.running import Running, new_key
from warehouse.database.pool import Pool

PROJECT = "narrow"


@pytest.fixture
def narrow(browser: Browser, service: Running, engine: Pool) -> Iterator[Page]:
    key = new_key(service.data, PROJECT)
    read = {"path": "/a", "userAgent": "GPTBot/1.3", "address": "20.171.207.2"}
    visit = {"path": "/a", "userAgent": FIREFOX, "referrer": "https://chatgpt.com/"}
    url, headers = f"{service.url}/v1/analytics/{PROJECT}/hits", {"Authorization": f"Bearer {key}"}
    assert httpx.post(url, json=[read, read, visit], headers=headers).status_code == 202
    with opened(browser, service, engine, with_javascript=True) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        yield page


@pytest.mark.long
def test_rows_of_a_narrow_window_have_all_columns_in_two_lines(narrow: Page, service: Running) -> None:
    for path, row, shown in (
        ("ai", ".readers .operator", ["Reads", "Purposes", "Verified", "Visits", "Reads per visit"]),
        ("pages", ".paths tbody tr", ["number", "number", "number both", "number share muted", "number first-read"]),
    ):
        narrow.goto(f"{service.url}/projects/{PROJECT}/{path}")
        cells = narrow.locator(row).first.locator("td.number, td[data-label]")
        name = "data-label" if path == "ai" else "class"
        assert [cell.get_attribute(name) for cell in cells.all() if cell.is_visible()] == shown
        boxes = [box for cell in cells.all() if (box := cell.bounding_box())]
        middles = sorted(box["y"] + box["height"] / 2 for box in boxes)
        assert sum(below - above > 8 for above, below in pairwise(middles)) == 1
        assert narrow.evaluate("document.documentElement.scrollWidth") == 390
