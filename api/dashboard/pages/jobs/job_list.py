"""The jobs of a project, and the form that starts one."""

from functools import partial

from starlette.responses import Response

from agent.jobs import journal, store
from agent.jobs.job import Status
from api.dashboard.pages.jobs import prompt_form
from api.dashboard.pages.jobs.job_view import STATES, job_view
from api.dashboard.pages.jobs.readiness import readiness
from api.dashboard.web import render
from api.dashboard.web.forms import Refusal
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import ProjectVisit

PATH = "/projects/{project}/jobs"
PAGE_JOBS = 25


def start(visit: ProjectVisit) -> Response:
    """Start a job with the posted prompt, and redirect to the page of the job."""
    project = visit.project.id
    outcome = prompt_form.submit(visit, partial(store.create, visit.state.control, project))
    if isinstance(outcome, Refusal):
        return job_list(visit, outcome.status, outcome.headers)
    return render.redirect(visit, f"/projects/{project}/jobs/{outcome.id}")


def job_list(visit: ProjectVisit, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Respond with the jobs of a project, newest first."""
    text, control = visit.parameters.get("status", ""), visit.state.control
    chosen = Status(text) if text in tuple(Status) else None
    number, _ = visit.page_of()
    jobs, has_more = store.list_page(control, visit.project.id, chosen, PAGE_JOBS, (number - 1) * PAGE_JOBS)
    summaries = journal.summaries(control, [job.id for job in jobs], prompt_form.now_us(visit))
    return render.page(
        visit,
        "jobs/list.html",
        title="Agent jobs",
        status=status,
        headers=headers,
        tab="Agent jobs",
        form=visit.form,
        jobs=[job_view(job, summaries) for job in jobs],
        has_more=has_more,
        page=number,
        states=STATES,
        chosen="" if chosen is None else chosen.value,
        remaining=prompt_form.remaining(visit),
        key=prompt_form.new_key(),
        readiness=readiness(visit),
    )


PAGES = (Page("GET", PATH, job_list, Access.PROJECT), Page("POST", PATH, start, Access.OWNER))
