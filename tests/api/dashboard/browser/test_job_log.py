"""The log of an agent job in Chromium: it grows while a follow-up is being written, and ends with the job."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from agent.jobs import queue, store
from agent.jobs.queue import Lease, Outcome
from api import settings
from tests.api.dashboard.browser.sample import ATTACK, MINUTE_US, Sample
from tests.api.dashboard.browser.visiting import visiting
from tests.processes.running import PROJECT
from warehouse.control import database
from warehouse.database.pool import Pool

UPDATE_MS = 2_000


@pytest.fixture
def engine(filled: Sample) -> Iterator[Pool]:
    engine = database.connect(settings.read({}, filled.data).database_url)
    yield engine
    engine.close()


def now_us() -> int:
    return time.time_ns() // 1_000


def claim(engine: Pool, id: str) -> Lease:
    """Claim the turn of a job. Turns of other jobs that wait are claimed, too."""
    while True:
        lease = queue.claim(engine, "test", now_us(), MINUTE_US)
        assert lease is not None
        if lease.job.id == id:
            return lease


@pytest.mark.long
def test_log_grows_while_a_follow_up_is_written(browser: Browser, filled: Sample, engine: Pool) -> None:
    id = store.create(engine, PROJECT, "Fix it", None, now_us()).job.id
    with visiting(browser, filled.url, filled.session) as visit:
        page = visit.page
        page.clock.install()
        page.goto(f"{filled.url}/projects/{PROJECT}/jobs/{id}")
        state, log = page.locator("#job .facts .tag"), page.get_by_label("Log of prompt 1")
        expect(state).to_have_text("Waiting")
        page.get_by_label("What should change?").fill("Shorter, please")

        lease = claim(engine, id)
        queue.renew(engine, lease, now_us(), MINUTE_US, f"\x1b[31mfirst line\x1b[0m {ATTACK}")
        page.clock.fast_forward(UPDATE_MS)
        expect(log).to_contain_text(f"first line {ATTACK}")
        expect(state).to_have_text("Working")
        queue.renew(engine, lease, now_us(), MINUTE_US, "first line\nsecond line")
        page.clock.fast_forward(UPDATE_MS)
        expect(log).to_contain_text("second line")

        queue.finish(engine, lease, Outcome(None, "https://git.example/docs/pull/7"), now_us())
        page.clock.fast_forward(UPDATE_MS)
        expect(state).to_have_text("Completed")
        expect(page.get_by_role("link", name="Pull request 7")).to_have_attribute("rel", "noopener noreferrer")
        expect(page.locator("#job[hx-get]")).to_have_count(0)
        expect(page.get_by_label("What should change?")).to_have_value("Shorter, please")
        expect(page.get_by_label("What should change?")).to_be_focused()
        assert (visit.errors, visit.foreign) == ([], [])


@pytest.mark.long
def test_log_without_javascript_is_reloaded_by_links(browser: Browser, filled: Sample, engine: Pool) -> None:
    id = store.create(engine, PROJECT, "Fix it", None, now_us()).job.id
    with visiting(browser, filled.url, filled.session, java_script_enabled=False) as visit:
        page = visit.page
        page.goto(f"{filled.url}/projects/{PROJECT}/jobs/{id}")
        lease = claim(engine, id)
        queue.renew(engine, lease, now_us(), MINUTE_US, "first line")
        page.get_by_role("link", name="Reload", exact=True).click()
        expect(page.get_by_label("Log of prompt 1")).to_contain_text("first line")
        page.get_by_role("link", name="reload every 5 seconds").click()
        queue.finish(engine, lease, Outcome("it broke"), now_us())
        expect(page.locator("#job .facts .tag")).to_have_text("Failed", timeout=15_000)
        expect(page.get_by_text("The last prompt failed.")).to_be_visible()
        page.get_by_label("What should change?").fill("Try again")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", name="Prompt 2")).to_be_visible()
        page.get_by_role("button", name="Cancel the job").click()
        expect(page.locator("#job .facts .tag")).to_have_text("Cancelled")
        page.locator("summary", has_text="Archive the job").click()
        page.get_by_role("button", name="Archive it now").click()
        expect(page.locator("#job .facts .tag")).to_have_text("Archived")
