"""One job: its prompts in order, its log as it grows, and the forms that continue, cancel and archive it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.responses import Response

from agent.errors import JobNotActive, JobStillActive
from agent.jobs import journal, store
from agent.jobs.job import Job, check_id
from api.dashboard.pages.jobs import prompt_form
from api.dashboard.pages.jobs.job_list import PATH as LIST
from api.dashboard.pages.jobs.job_view import JobView, job_view, turn_view
from api.dashboard.pages.jobs.readiness import readiness
from api.dashboard.web import render
from api.dashboard.web.forms import Refusal
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import PAGES_MAX, ProjectVisit, number_of
from api.http import problems
from api.http.problems import KINDS, Problem
from warehouse.database.pool import Pool

PATH = LIST + "/{job}"
PAGE_TURNS = 5
"""Number of turns on a page: their prompts and outputs have at most 50,000 characters in total."""


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
    outcome = prompt_form.submit(visit, partial(store.message, visit.state.control, job.project, job.id))
    if isinstance(outcome, Refusal):
        return _page(visit, _find(visit), outcome.status, outcome.headers)
    return _to_job(visit, job)


def cancel(visit: ProjectVisit) -> Response:
    return _changed(visit, store.cancel)


def archive(visit: ProjectVisit) -> Response:
    return _changed(visit, store.archive)


def _changed(visit: ProjectVisit, change: Callable[[Pool, str, str, int], Job]) -> Response:
    """Change a job, or respond with the reason for the refusal beside its buttons."""
    job = _find(visit)
    try:
        change(visit.state.control, job.project, job.id, prompt_form.now_us(visit))
    except (JobNotActive, JobStillActive) as error:
        problem = problems.of(visit.request, error)
        visit.form.fault("action", problem.detail)
        return _page(visit, _find(visit), KINDS[problem.kind].status, {})
    return _to_job(visit, job)


def _find(visit: ProjectVisit) -> Job:
    return store.find(visit.state.control, visit.project.id, check_id(visit.path_parameter("job")))


def _to_job(visit: ProjectVisit, job: Job) -> Response:
    return render.redirect(visit, f"/projects/{job.project}/jobs/{job.id}")


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
    pages = max(1, -(-view.turns // PAGE_TURNS))
    page = number_of(visit.parameters.get("page", ""), pages) or pages  # the last one by default
    turns = journal.turns(visit.state.control, job.id, PAGE_TURNS, (page - 1) * PAGE_TURNS)
    return {
        "job": view,
        "form": visit.form,
        "turns": [turn_view(turn, visit.now) for turn in turns],
        "page": page,
        "pages": pages,
        "has_no_worker": visit.state.settings.jobs_at_once == 0,
    }


def _view(visit: ProjectVisit, job: Job) -> JobView:
    summaries = journal.summaries(visit.state.control, [job.id], prompt_form.now_us(visit))
    return job_view(job, summaries)


PAGES = (
    Page("GET", PATH, job_page, Access.PROJECT),
    Page("GET", PATH + "/turns/{turn}", turn_page, Access.PROJECT),
    Page("POST", PATH + "/message", follow_up, Access.OWNER),
    Page("POST", PATH + "/cancel", cancel, Access.OWNER),
    Page("POST", PATH + "/archive", archive, Access.OWNER),
)
