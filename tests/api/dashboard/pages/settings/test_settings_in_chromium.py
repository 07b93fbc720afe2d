"""The pages Set up, API keys and Why in Chromium, with and without JavaScript."""

import re
import time

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.api.dashboard.browser.page_server import page_server
from tests.api.dashboard.browsing import BOTH, opened
from tests.processes.running import PROJECT, Running
from warehouse.control import projects
from warehouse.database.pool import Pool

UPDATE_MS = 5_000


@pytest.mark.long
@BOTH
def test_key_is_created_used_revoked(browser: Browser, service: Running, engine: Pool, with_javascript: bool) -> None:
    name = f"browser {with_javascript} <b>"
    with opened(browser, service, engine, with_javascript=with_javascript) as page:
        page.goto(f"{service.url}/projects/{PROJECT}/keys")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Read", exact=False).first.check()
        page.get_by_role("button", name="Create the key").click()
        token = page.locator(".created code").first.inner_text()
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(service.views, headers=headers).status_code == 200
        if with_javascript:
            page.get_by_role("button", name="Copy the key").click()
            expect(page.get_by_role("button", name="Copied")).to_be_visible()
            assert page.evaluate("navigator.clipboard.readText()") == token
        page.reload()  # the browser posts the form again
        expect(page.get_by_text("No second key was created")).to_be_visible()
        expect(page.get_by_text(token)).to_have_count(0)
        row = page.get_by_role("row").filter(has_text=name)
        expect(row).to_have_count(1)
        row.locator("summary").click()
        row.get_by_role("button", name="Revoke").click()
        expect(page.get_by_text("The key was revoked")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("revoked")
        assert "notice=revoked" in page.url


@pytest.mark.long
@BOTH
def test_test_view_is_sent_and_shown(browser: Browser, service: Running, engine: Pool, with_javascript: bool) -> None:
    def views() -> int:
        totals = httpx.get(f"{service.url}/v1/analytics/{PROJECT}/breakdown?by=path", headers=service.auth).json()
        return sum(row["bot"] for row in totals["rows"] if row["value"] == "/readership-test")

    before = views()
    with opened(browser, service, engine, with_javascript=with_javascript) as page:
        page.goto(f"{service.url}/projects/{PROJECT}/setup")
        page.get_by_role("button", name="Send a test view").click()
        expect(page.get_by_text("Your test view has arrived")).to_be_visible()
        page.get_by_role("link", name="Why?").click()
        expect(page.get_by_role("heading", name="Counts as another bot")).to_be_visible()  # HeadlessChrome
    assert views() == before + 1


@pytest.mark.long
def test_view_by_the_copied_line_appears_without_a_reload(browser: Browser, service: Running, engine: Pool) -> None:
    projects.create(engine, "new-site", (), int(time.time()))
    with opened(browser, service, engine, with_javascript=True) as page:
        page.clock.install()
        page.goto(f"{service.url}/projects/new-site/setup")
        line = page.locator("#script code").nth(1).inner_text()
        assert re.fullmatch(r'<script defer src="[^"]+/beacon.js" data-project="new-site"></script>', line)
        with page_server() as site:
            site.head = line
            page.get_by_label("Origins, one per line").fill(site.origin)
            page.get_by_role("button", name="Change").click()
            expect(page.get_by_text("The allowed sites were changed")).to_be_visible()
            expect(page.get_by_role("cell", name="not set up")).to_have_count(3)
            with (
                browser.new_context() as visitor,
                visitor.expect_event("response", lambda response: response.url.endswith("/new-site/hits")) as sent,
            ):
                visitor.new_page().goto(f"{site.origin}/hello")
            assert sent.value.status == 202
            page.clock.fast_forward(UPDATE_MS)
            expect(page.get_by_role("cell", name="connected")).to_have_count(1)
            expect(page.get_by_role("cell", name="not set up")).to_have_count(2)


@pytest.mark.long
@BOTH
def test_user_agent_is_explained_and_its_address_can_be_shared(
    browser: Browser, service: Running, engine: Pool, with_javascript: bool
) -> None:
    with opened(browser, service, engine, with_javascript=with_javascript) as page:
        page.goto(f"{service.url}/projects/{PROJECT}/why")
        page.get_by_label("User agent", exact=True).fill("Mozilla/5.0 (compatible; ClaudeBot/1.0)")
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_role("heading", name="Counts as AI")).to_be_visible()
        expect(page.locator("mark")).to_have_text("ClaudeBot")
        page.goto(page.url)
        expect(page.get_by_role("heading", name="Counts as AI")).to_be_visible()
