"""Parts of pages that are updated while the page is open, in Chromium."""

import re

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.api.dashboard.browser.sample import Sample
from tests.api.dashboard.browser.visiting import visiting
from tests.processes.running import PROJECT

UPDATE_MS = 5_000


@pytest.mark.long
def test_failed_update_leaves_the_page_as_it_is(browser: Browser, filled: Sample) -> None:
    """Answer an update with an error, as an overloaded service does, and the next update as usual."""

    def fail(route: Route) -> None:
        route.fulfill(status=503, content_type="text/html", body="<h1>Overloaded</h1>")

    with visiting(browser, filled.url, filled.session) as visit:
        page, address = visit.page, re.compile(r"/setup/arrivals")
        page.clock.install()
        page.route(address, fail)
        page.goto(f"{filled.url}/projects/{PROJECT}/setup?test=1")
        for _ in range(2):  # the second update is requested only if the first response was ignored
            with page.expect_response(address) as failed:
                page.clock.fast_forward(UPDATE_MS)
            assert failed.value.status == 503
        expect(page.get_by_role("heading", name="Overloaded")).to_have_count(0)
        expect(page.get_by_role("heading", name="What arrives")).to_be_visible()
        page.unroute(address)
        with page.expect_response(address) as updated:
            page.clock.fast_forward(UPDATE_MS)
        assert updated.value.status == 200


@pytest.mark.long
def test_link_whose_part_is_refused_opens_the_page_with_the_message(browser: Browser, filled: Sample) -> None:
    """Answer htmx and the browser as an overloaded service does: the message of the page is shown."""
    with visiting(browser, filled.url, filled.session) as visit:
        page = visit.page
        page.goto(f"{filled.url}/projects/{PROJECT}?period=all")
        requests: list[str | None] = []

        def refuse(route: Route) -> None:
            requests.append(route.request.headers.get("hx-request"))
            route.fulfill(status=503, content_type="text/html", body="<h1>Overloaded</h1>")

        page.route(re.compile(r"[?&]sort="), refuse)
        page.locator("a[hx-get*='sort=']").first.click()
        expect(page.get_by_role("heading", name="Overloaded")).to_be_visible()
        assert requests == ["true", None]
