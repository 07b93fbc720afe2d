"""One job: its prompts in order, its log as it grows, and the forms that continue, cancel and archive it."""

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from agent.errors import JobNotActive, JobStillActive
from agent.jobs import journal, store
from agent.jobs.job import Job, check_id
from agent.jobs.store import QueuedPrompt
from api.dashboard.pages.jobs import prompt_form
from api.dashboard.pages.jobs.job_list import PATH as LIST
from api.dashboard.pages.jobs.job_view import JobView, job_view, summary_of, turn_view
from api.dashboard.pages.jobs.prompt_form import Refusal
from api.dashboard.pages.jobs.readiness import readiness
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import PAGES_MAX, ProjectVisit, number_of
from api.http import problems
from api.http.problems import KINDS, Problem

PATH = LIST + "/{job}"
PAGE_TURNS = 5
"""Number of turns on a page: their prompts and outputs have at most 50,000 characters in total."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Place in the list of turns: page `page` of `pages`."""

    page: int
    pages: int

    @property
    def offset(self) -> int:
        return (self.page - 1) * PAGE_TURNS


def job_page(visit: ProjectVisit) -> Response:
    """Respond with a job; for htmx, with the part that changes while the job is active."""
    job = _find(visit)
    if visit.is_htmx:
        return render.fragment(visit, "jobs/live.html", **_live(visit, job))
    return _page(visit, job, 200, {})


def turn_page(visit: ProjectVisit) -> Response:
    """Respond with the whole prompt and log of a turn."""
    job = _find(visit)
    number = number_of(visit.path_parameter("turn"), PAGES_MAX)
    turns = journal.turns(visit.state.control, job.id, 1, number - 1) if number else []
    if not turns:
        raise Problem("not-found", "the job has no prompt with this number")
    turn = turn_view(turns[0], visit.now, is_whole=True)
    title = f"Prompt {number}"
    return render.page(visit, "jobs/turn.html", title=title, tab="Agent jobs", job=_view(visit, job), turn=turn)


def follow_up(visit: ProjectVisit) -> Response:
    """Send the posted prompt to the job."""
    job = _find(visit)

    def enqueue(prompt: str, key: str, now_us: int) -> QueuedPrompt:
        return store.message(visit.state.control, job.project, job.id, prompt, key, now_us)

    outcome = prompt_form.submit(visit, enqueue)
    if isinstance(outcome, Refusal):
        return _page(visit, _find(visit), outcome.status, outcome.headers)
    return _to_job(visit, job)


def cancel(visit: ProjectVisit) -> Response:
    """Cancel an active job."""
    job = _find(visit)
    try:
        store.cancel(visit.state.control, job.project, job.id, prompt_form.now_us(visit))
    except JobNotActive as error:
        return _refused(visit, error)
    return _to_job(visit, job)


def archive(visit: ProjectVisit) -> Response:
    """Archive a job that is not active."""
    job = _find(visit)
    try:
        store.archive(visit.state.control, job.project, job.id, prompt_form.now_us(visit))
    except JobStillActive as error:
        return _refused(visit, error)
    return _to_job(visit, job)


def _find(visit: ProjectVisit) -> Job:
    return store.find(visit.state.control, visit.project.id, check_id(visit.path_parameter("job")))


def _to_job(visit: ProjectVisit, job: Job) -> Response:
    return render.redirect(visit, f"/projects/{job.project}/jobs/{job.id}")


def _refused(visit: ProjectVisit, error: JobNotActive | JobStillActive) -> Response:
    """Respond with the job, and with the reason beside its buttons."""
    problem = problems.of(visit.request, error)
    visit.form.fault("action", problem.detail)
    return _page(visit, _find(visit), KINDS[problem.kind].status, {})


def _page(visit: ProjectVisit, job: Job, status: int, headers: dict[str, str]) -> Response:
    values = _live(visit, job)
    return render.page(
        visit,
        "jobs/job.html",
        title=values["job"].title,
        status=status,
        headers=headers,
        tab="Agent jobs",
        remaining=prompt_form.remaining(visit),
        key=prompt_form.new_key(),
        readiness=readiness(visit),
        is_followed="follow" in visit.parameters,
        **values,
    )


def _live(visit: ProjectVisit, job: Job) -> dict[str, Any]:
    """Return the values of the part of the page that changes while the job is active."""
    view = _view(visit, job)
    place = _place(visit, view.turns)
    turns = journal.turns(visit.state.control, job.id, PAGE_TURNS, place.offset)
    return {
        "job": view,
        "form": visit.form,
        "turns": [turn_view(turn, visit.now) for turn in turns],
        "place": place,
        "has_no_worker": visit.state.settings.jobs_at_once == 0,
    }


def _view(visit: ProjectVisit, job: Job) -> JobView:
    summaries = journal.summaries(visit.state.control, [job.id], prompt_form.now_us(visit))
    return job_view(job, summary_of(summaries, job.id))


def _place(visit: ProjectVisit, turns: int) -> _Place:
    """Return the page that the address names, by default the last one."""
    pages = max(1, -(-turns // PAGE_TURNS))
    return _Place(number_of(visit.parameters.get("page", ""), pages) or pages, pages)


PAGES = (
    Page("GET", PATH, job_page, Access.PROJECT),
    Page("GET", PATH + "/turns/{turn}", turn_page, Access.PROJECT),
    Page("POST", PATH + "/message", follow_up, Access.OWNER),
    Page("POST", PATH + "/cancel", cancel, Access.OWNER),
    Page("POST", PATH + "/archive", archive, Access.OWNER),
)
