"""The way of a new owner, from an empty folder to the first view of a page, and a key that is used and revoked."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from api.accounts.attempts import FREE_FAILURES
from tests.api.dashboard.browser.axe import violations
from tests.api.dashboard.browser.page_server import page_server
from tests.api.dashboard.browser.visiting import visiting
from tests.processes.running import Running
from tests.processes.waiting import until

PASSWORD = "correct horse battery"
PERSON = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
"""User agent of a person: that of a headless browser is a bot."""


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Running]:
    """Yield a service that was started on an empty folder."""
    running = Running(tmp_path / "data", environ={"READERSHIP_JOBS_AT_ONCE": "0"}, key="none yet").start()
    try:
        yield running
    finally:
        status = running.stop()
    assert status == 0


@pytest.mark.long
@pytest.mark.parametrize("with_javascript", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_new_owner_sees_the_first_view_and_uses_a_key(browser: Browser, empty: Running, with_javascript: bool) -> None:
    with visiting(browser, empty.url, None, java_script_enabled=with_javascript) as visit:
        page = visit.page
        sign_up(page, first_link(empty))
        with page_server() as site:
            create_project(page, site.origin)
            site.head = page.locator("#script code", has_text="beacon.js").inner_text()
            view(browser, f"{site.origin}/first-page")
        page.get_by_role("link", name="Overview").click()
        until(lambda: page.reload() and page.get_by_role("link", name="/first-page").count())
        assert_key_works_until_it_is_revoked(page, empty)
        assert (visit.errors, visit.foreign) == ([], [])


@pytest.mark.night
def test_link_of_the_start_creates_one_owner(browser: Browser, empty: Running) -> None:
    link = first_link(empty)
    with visiting(browser, empty.url, None) as visit:
        sign_up(visit.page, link)
    with visiting(browser, empty.url, None) as visit:
        response = visit.page.goto(link)
        assert response is not None
        assert response.status == 404
        visit.page.goto(f"{empty.url}/projects")
        expect(visit.page.get_by_role("heading", name="Sign in")).to_be_visible()
        sign_in(visit.page, PASSWORD)
        expect(visit.page.get_by_role("heading", name="Projects", exact=True)).to_be_visible()


@pytest.mark.night
def test_right_password_after_five_wrong_ones_has_to_wait(browser: Browser, empty: Running) -> None:
    with visiting(browser, empty.url, None) as visit:
        page = visit.page
        sign_up(page, first_link(empty))
        page.get_by_role("button", name="Sign out").click()
        for _ in range(FREE_FAILURES):
            sign_in(page, "not the password")
            expect(page.get_by_text("The name or the password is wrong.")).to_be_visible()
        with page.expect_navigation() as navigation:
            sign_in(page, PASSWORD)
        assert navigation.value.status == 429
        expect(page.get_by_text(re.compile("Too many failed attempts. Try again in [0-9]+ seconds."))).to_be_visible()
        expect(page.get_by_label("Name")).to_have_value("Ada")
        assert violations(page) == []


def first_link(running: Running) -> str:
    """Return the one-time link that the start of the service has logged."""
    match = until(lambda: re.search(r"http://\S+/welcome/[\w-]+", running.log.read_text()))
    assert match is not None
    return match[0]


def sign_up(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("New password").fill(PASSWORD)
    page.get_by_label("The same password again").fill(PASSWORD)
    page.get_by_role("button", name="Create the owner").click()
    expect(page.get_by_role("heading", name="Projects", exact=True)).to_be_visible()


def sign_in(page: Page, password: str) -> None:
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def create_project(page: Page, origin: str) -> None:
    """Create the project `site`, whose pages have this origin; the next page is that of its set-up."""
    page.get_by_label("Project id").fill("site")
    page.get_by_label("Address of the website").fill(origin)
    page.get_by_role("button", name="Create project").click()
    expect(page.get_by_role("heading", name="Set up", exact=True)).to_be_visible()


def view(browser: Browser, url: str) -> None:
    """Open a page of the site as a person does, and wait until its view was accepted."""
    with (
        browser.new_context(user_agent=PERSON) as visitor,
        visitor.expect_event("response", lambda response: response.url.endswith("/hits")) as sent,
    ):
        visitor.new_page().goto(url)
    assert sent.value.status == 202


def assert_key_works_until_it_is_revoked(page: Page, running: Running) -> None:
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="API keys").first.click()
    page.get_by_label("Name").fill("report")
    page.get_by_label("Read", exact=False).first.check()
    page.get_by_role("button", name="Create the key").click()
    token = page.locator(".created code").first.inner_text()
    address, headers = f"{running.url}/v1/analytics/site/views", {"Authorization": f"Bearer {token}"}
    response = httpx.get(address, headers=headers)
    assert response.status_code == 200, response.text
    [row] = response.json()["views"]
    assert (row["path"], row["human"]) == ("/first-page", 1)
    page.get_by_role("link", name="I have copied it").click()
    page.locator("summary", has_text="Revoke").click()
    page.get_by_role("button", name="Revoke report").click()
    expect(page.get_by_text("The key was revoked")).to_be_visible()
    until(lambda: httpx.get(address, headers=headers).status_code == 401)
