"""The list of a project's jobs, and the form that starts one."""

import re

from agent.jobs import journal, store
from agent.jobs.job import PROMPT_BYTES_MAX
from api.dashboard.pages.jobs.job_list import PAGE_JOBS
from tests.api.dashboard.pages.jobs.jobs import REPOSITORY, Jobs, now_us, text_of
from tests.api.dashboard.site import Dashboard

SCRIPT = "<script>alert(1)</script>"


def prompts(jobs: Jobs) -> list[str]:
    """Return the first prompts of all jobs of the project."""
    return [journal.turns(jobs.dashboard.engine, id, 1)[0].prompt for id in jobs.ids()]


def test_each_job_has_its_first_line_state_agent_and_pull_request(jobs: Jobs) -> None:
    jobs.add("First line\nSecond line")
    jobs.end(None, f"{REPOSITORY}/pull/7")
    jobs.add("Another job")
    jobs.end("it broke")
    jobs.add("A third job")
    page = jobs.get()
    rows = [text_of(row) for row in page.split("<tr>")]
    for beginning in (
        "First line command Completed Pull request 7",
        "Another job command Failed none",
        "A third job command Waiting none",
    ):
        assert sum(row.startswith(beginning) for row in rows) == 1
    assert "Second line" not in page
    for id in jobs.ids():
        assert f'<a href="{jobs.path}/{id}">' in page
    assert f'<a href="{REPOSITORY}/pull/7" rel="noopener noreferrer" target="_blank">Pull request 7</a>' in page


def test_pull_request_of_another_scheme_is_no_link(jobs: Jobs) -> None:
    urls = "javascript:alert(1) data:text/html,x ftp://git.example/7 //evil.example https:// http://[".split()
    for url in urls:
        jobs.add()
        jobs.end(None, url)
    page = jobs.get()
    assert [url for url in urls if f'href="{url}"' in page] == []
    assert [url for url in urls if url not in text_of(page)] == []


def test_prompt_is_escaped(jobs: Jobs) -> None:
    jobs.add(SCRIPT)
    page = jobs.get()
    assert SCRIPT not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;</a>" in page


def test_jobs_are_filtered_by_state(jobs: Jobs) -> None:
    jobs.add("It succeeds")
    jobs.end()
    jobs.add("It fails")
    jobs.end("it broke")
    completed = jobs.get("?status=completed")
    assert ("It succeeds" in completed, "It fails" in completed) == (True, False)
    assert "There are no archived jobs." in jobs.get("?status=archived")
    assert "It fails" in jobs.get("?status=nonsense")


def test_long_list_has_pages(jobs: Jobs) -> None:
    for number in range(PAGE_JOBS + 1):
        jobs.add(f"Prompt {number:02}.")
    first, second = jobs.get(), jobs.get("?page=2")
    assert first.count("Prompt ") == PAGE_JOBS
    assert second.count("Prompt ") == 1
    assert ("page=2" in first, "page=3" in second, "page=1" in second) == (True, False, True)
    assert "There are no jobs on this page." in jobs.get("?page=9")
    for invalid in ("0", "-1", "x", "9" * 30, "²"):
        assert "Page 1<" in jobs.get(f"?page={invalid}")


def test_links_and_the_form_lead_to_pages_about_jobs(jobs: Jobs) -> None:
    page = jobs.get()
    assert f'<form method="post" action="{jobs.path}">' in page
    assert re.findall(r'<a href="([^"]+)\?status=(\w+)"', page) == [
        (jobs.path, status) for status in ("active", "completed", "failed", "archived")
    ]


def test_form_starts_a_job_and_leads_to_it(jobs: Jobs) -> None:
    response = jobs.send("", "  Fix the typo\r\non the first page  ")
    [id] = jobs.ids()
    assert (response.status_code, response.headers["location"]) == (303, f"{jobs.path}/{id}")
    assert prompts(jobs) == ["Fix the typo\non the first page"]


def test_double_click_starts_one_job(jobs: Jobs) -> None:
    key = "k" * 22
    locations = {jobs.post("", prompt="Fix it", key=key).headers["location"] for _ in range(2)}
    assert locations == {f"{jobs.path}/{jobs.ids()[0]}"}
    assert len(jobs.ids()) == 1


def test_form_that_was_sent_with_another_prompt_can_be_sent_again(jobs: Jobs) -> None:
    key = "k" * 22
    jobs.post("", prompt="Fix it", key=key)
    response = jobs.post("", prompt="Fix that, too", key=key)
    assert response.status_code == 422
    assert "This form has sent another prompt already." in response.text
    assert key not in response.text
    assert "Fix that, too</textarea>" in response.text
    assert len(jobs.ids()) == 1


def test_invalid_prompt_is_shown_with_its_fault(jobs: Jobs) -> None:
    for prompt, fault in {
        "": "Please fill in this field.",
        " \r\n\t": "Please fill in this field.",
        "a\0b": "The prompt has a NUL character.",
        "é" * (PROMPT_BYTES_MAX // 2 + 1): "The prompt has 65538 bytes; at most 65536 are accepted.",
        "x" * (PROMPT_BYTES_MAX + 1): "Use at most 65,536 characters, not 65,537.",
    }.items():
        response = jobs.send("", prompt)
        assert response.status_code == 422
        assert fault in response.text
        assert 'aria-invalid="true"' in response.text
    for key in ("", "short", "k" * 23, "k" * 21 + "\0"):
        assert jobs.post("", prompt="Fix it", key=key).status_code == 400
    assert jobs.ids() == []


def test_forms_name_who_can_read_the_prompt(jobs: Jobs) -> None:
    id = jobs.add()
    published = "All who can read the repository can read your prompt."
    assert all(published in jobs.get(path) for path in ("", f"/{id}"))
    jobs.configure(preset="command", command=("true",), publish_prompts=False)
    for path in ("", f"/{id}"):
        assert published not in jobs.get(path)
        assert "Your prompt is not published there." in jobs.get(path)


def test_quota_that_is_left_is_shown(jobs: Jobs) -> None:
    assert "100 of 100 new jobs left in this hour." in jobs.get()
    assert jobs.send("", "Fix it").status_code == 303
    assert "99 of 100 new jobs left in this hour; the next one is free at" in jobs.get()


def test_job_beyond_the_quota_is_refused_and_its_prompt_is_not_lost(jobs: Jobs) -> None:
    for _ in range(100):
        store.create(jobs.dashboard.engine, jobs.project, "Fix it", None, now_us())
    assert "0 of 100 new jobs left in this hour" in jobs.get()
    response = jobs.send("", "One more")
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0
    assert "All 100 new jobs of this hour are used up. Try again in 60 min." in response.text
    assert "One more</textarea>" in response.text


def test_viewer_sees_the_jobs_and_no_form(jobs: Jobs) -> None:
    jobs.add("A visible job")
    viewer = jobs.dashboard.visitor("viewer")
    page = viewer.get(jobs.path).text
    assert "A visible job" in page
    assert "Only an owner can start a job." in page
    assert "<textarea" not in page


def test_jobs_of_another_project_are_not_listed(jobs: Jobs, dashboard: Dashboard) -> None:
    other = Jobs.create(dashboard)
    other.add("A job of another project")
    assert "A job of another project" not in jobs.get()
