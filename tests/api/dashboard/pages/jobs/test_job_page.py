"""The page of a job: its prompts, its log as it grows, follow-ups, cancel and archive."""

import re

from agent.jobs import journal, queue, store
from agent.jobs.job import Status
from agent.jobs.store import CANCELLED
from api.dashboard.pages.jobs.job_page import PAGE_TURNS
from api.dashboard.pages.jobs.job_view import OUTPUT_CHARACTERS, PROMPT_CHARACTERS
from tests.api.dashboard.pages.jobs.jobs import LEASE_US, REPOSITORY, Jobs, now_us, text_of
from tests.stores import sql

SCRIPT = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
HTMX = {"HX-Request": "true"}


def log(jobs: Jobs, id: str, kind: journal.EntryKind, text: str) -> None:
    """Append an entry to the log of the last turn of a job."""
    with jobs.dashboard.engine.transaction() as connection:
        (latest,) = sql.execute(connection, "SELECT max(id) FROM turns WHERE job_id = :id", id=id).fetchone()
        journal.append(connection, id, latest, kind, text, now_us())


def status(jobs: Jobs, id: str) -> Status:
    return store.find(jobs.dashboard.engine, jobs.project, id).status


def test_completed_job_shows_its_prompts_in_order_its_log_and_its_pull_request(jobs: Jobs) -> None:
    id = jobs.add("First prompt")
    jobs.send(f"/{id}", "Second prompt")
    lease = jobs.claim()
    queue.renew(jobs.dashboard.engine, lease, now_us(), LEASE_US, "printed by the agent")
    queue.finish(jobs.dashboard.engine, lease, queue.Outcome(None), now_us())
    jobs.end(None, f"{REPOSITORY}/pull/7")
    page = jobs.get(f"/{id}")
    text = text_of(page)
    order = [text.index(part) for part in ("Prompt 1 Done", "printed by the agent", "Prompt 2 Done", "Second prompt")]
    assert order == sorted(order)
    assert "State Completed Pull request Pull request 7 Repository" in text
    assert f'href="{REPOSITORY}/pull/7"' in page
    assert "hx-trigger" not in page
    assert f'<a href="{jobs.path}">All jobs</a>' in page
    assert f'<form method="post" action="{jobs.path}/{id}/message">' in page


def test_active_job_is_polled_and_its_log_grows(jobs: Jobs) -> None:
    id = jobs.add()
    assert "State Waiting" in text_of(jobs.get(f"/{id}"))
    lease = jobs.claim()
    queue.renew(jobs.dashboard.engine, lease, now_us(), LEASE_US, "one line")
    page = jobs.get(f"/{id}")
    assert "State Working" in text_of(page)
    address = re.search(r'hx-get="([^"]+)" hx-trigger="every 2s"', page)
    assert address is not None
    queue.renew(jobs.dashboard.engine, lease, now_us(), LEASE_US, "one line\nanother line")
    fragment = jobs.owner.get(address[1], headers=HTMX).text
    assert fragment.lstrip().startswith('<div id="job" hx-get=')
    assert "another line" in fragment
    queue.finish(jobs.dashboard.engine, lease, queue.Outcome("it broke"), now_us())
    last = jobs.owner.get(address[1], headers=HTMX).text
    assert "hx-get" not in last
    assert "The last prompt failed. It broke. A follow-up" in text_of(last)


def test_page_without_javascript_is_reloaded_only_if_the_reader_wants_it(jobs: Jobs) -> None:
    """Check that the page does not reload by default, which would delete a follow-up that is being written."""
    id = jobs.add()
    page = jobs.get(f"/{id}")
    assert "http-equiv" not in page
    assert f'href="{jobs.path}/{id}?follow=on"' in page
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in jobs.get(f"/{id}?follow=on")
    jobs.end()
    assert "http-equiv" not in jobs.get(f"/{id}?follow=on")


def test_prompt_log_and_reason_are_escaped_and_have_no_escape_sequences(jobs: Jobs) -> None:
    id = jobs.add(f"{SCRIPT}\n\x1b[31mprompt\x1b[0m")
    lease = jobs.claim()
    queue.renew(jobs.dashboard.engine, lease, now_us(), LEASE_US, f"\x1b[31m{SCRIPT}\x1b[0m output")
    log(jobs, id, "step", f"{SCRIPT} step")
    queue.finish(jobs.dashboard.engine, lease, queue.Outcome(f"{SCRIPT} reason"), now_us())
    for path in (f"/{id}", f"/{id}/turns/1"):
        page = jobs.get(path)
        assert SCRIPT not in page
        assert "\x1b" not in page
        assert "[31m" not in page
        for place in ("\nprompt", " output", " step", " reason"):
            assert ESCAPED + place in page


def test_long_prompt_and_output_are_shortened_and_whole_on_the_page_of_the_turn(jobs: Jobs) -> None:
    id = jobs.add("p" * PROMPT_CHARACTERS + " end of prompt")
    log(jobs, id, "output", "first line\n" + "line\n" * (OUTPUT_CHARACTERS // 5) + "last line")
    page, whole = jobs.get(f"/{id}"), jobs.get(f"/{id}/turns/1")
    assert ("end of prompt" in page, "first line" in page) == (False, False)
    assert ("[...]\nline" in page, "last line" in page) == (True, True)
    assert f'href="{jobs.path}/{id}/turns/1"' in page
    assert ("end of prompt" in whole, "first line" in whole, "[...]" in whole) == (True, True, False)
    long_prompt = jobs.add("p" * (PROMPT_CHARACTERS + 1))
    assert "Show the whole prompt and log" in jobs.get(f"/{long_prompt}")
    jobs.get(f"/{id}/turns/2", status=404)


def test_job_with_many_prompts_has_pages_and_opens_at_the_last(jobs: Jobs) -> None:
    id = jobs.add("Prompt number 1.")
    for number in range(2, PAGE_TURNS + 2):
        store.message(jobs.dashboard.engine, jobs.project, id, f"Prompt number {number}.", None, 0)
    last, first = jobs.get(f"/{id}"), jobs.get(f"/{id}?page=1")
    assert re.findall(r'<p class="prompt">Prompt number (\d)', last) == ["6"]
    assert re.findall(r'<p class="prompt">Prompt number (\d)', first) == ["1", "2", "3", "4", "5"]
    assert "Page 2 of 2" in last
    assert jobs.get(f"/{id}?page=99").count('<p class="prompt">') == 1


def test_follow_up_continues_the_job_once(jobs: Jobs) -> None:
    id = jobs.add()
    jobs.end("it broke")
    response = jobs.send(f"/{id}", "Try again", key="k" * 22)
    assert (response.status_code, response.headers["location"]) == (303, f"{jobs.path}/{id}")
    assert jobs.send(f"/{id}", "Try again", key="k" * 22).status_code == 303
    assert [turn.prompt for turn in journal.turns(jobs.dashboard.engine, id, 10)] == ["Fix it", "Try again"]
    assert status(jobs, id) is Status.ACTIVE
    assert "99 of 100 messages left in this hour; the next one is free at" in jobs.get(f"/{id}")


def test_invalid_follow_up_is_shown_with_its_fault(jobs: Jobs) -> None:
    id = jobs.add()
    response = jobs.send(f"/{id}", " ")
    assert (response.status_code, "Please fill in this field." in response.text) == (422, True)


def test_follow_up_beyond_the_quota_is_refused(jobs: Jobs) -> None:
    id = jobs.add()
    for _ in range(100):
        store.message(jobs.dashboard.engine, jobs.project, id, "More", None, now_us())
    response = jobs.send(f"/{id}", "One more")
    assert (response.status_code, int(response.headers["retry-after"]) > 0) == (429, True)
    assert "All 100 messages of this hour are used up." in response.text
    assert "One more</textarea>" in response.text


def test_archived_job_refuses_a_follow_up(jobs: Jobs) -> None:
    id = jobs.add()
    jobs.end()
    assert jobs.post(f"/{id}/archive").status_code == 303
    page = jobs.get(f"/{id}")
    assert "This job is archived: it accepts no follow-ups." in page
    assert "<textarea" not in page
    assert f"{id}/archive" not in page
    response = jobs.post(f"/{id}/message", prompt="More", key="k" * 22)
    assert response.status_code == 409
    assert "The job is archived and accepts no messages; create another job." in response.text


def test_active_job_can_be_cancelled_once(jobs: Jobs) -> None:
    id = jobs.add()
    assert f"{jobs.path}/{id}/cancel" in jobs.get(f"/{id}")
    assert jobs.post(f"/{id}/cancel").status_code == 303
    assert (status(jobs, id), store.find(jobs.dashboard.engine, jobs.project, id).reason) == (Status.FAILED, CANCELLED)
    assert "State Cancelled" in text_of(jobs.get(f"/{id}"))
    response = jobs.post(f"/{id}/cancel")
    assert response.status_code == 409
    assert "The job is not active: there is nothing to cancel." in response.text


def test_active_job_cannot_be_archived(jobs: Jobs) -> None:
    id = jobs.add()
    assert f"{jobs.path}/{id}/archive" not in jobs.get(f"/{id}")
    response = jobs.post(f"/{id}/archive")
    assert response.status_code == 409
    assert "The job is active: cancel it, or wait until it has ended." in response.text
    assert status(jobs, id) is Status.ACTIVE


def test_unknown_job_and_that_of_another_project_are_not_found(jobs: Jobs) -> None:
    other = Jobs.create(jobs.dashboard)
    theirs = other.add()
    for id in ("unknown", "0" * 24, "%00", "' OR 1=1", theirs):
        jobs.get(f"/{id}", status=404)
        assert jobs.post(f"/{id}/message", prompt="Fix it", key="k" * 22).status_code == 404
        assert jobs.post(f"/{id}/cancel").status_code == 404
    assert status(other, theirs) is Status.ACTIVE


def test_viewer_reads_the_log_and_has_no_form(jobs: Jobs) -> None:
    id = jobs.add("A prompt")
    page = jobs.dashboard.visitor("viewer").get(f"{jobs.path}/{id}").text
    assert "A prompt" in page
    assert "Only an owner can send a follow-up." in page
    assert f"{jobs.path}/{id}/" not in page
