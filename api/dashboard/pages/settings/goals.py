"""Goals of a project: owners add and remove them, and the overview shows how many visitors reached them."""

from typing import cast

from starlette.responses import Response

from api import goals as definitions
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import ProjectVisit
from warehouse.control import goals
from warehouse.control.goals import KINDS, NAME_CHARACTERS_MAX, VALUE_CHARACTERS_MAX, Kind
from warehouse.errors import InvalidGoal

KIND_NAMES: dict[Kind, str] = {"path": "Page", "event": "Event"}


def add(visit: ProjectVisit) -> Response:
    form, project = visit.form, visit.project.id
    kind, name = cast("Kind", form.choice("kind", KINDS)), form.text("name", NAME_CHARACTERS_MAX)
    value = form.text("value", VALUE_CHARACTERS_MAX.get(kind, 0))
    try:
        if not form.faults:
            definitions.add(visit.state.control, project, name, kind, value, visit.user_name)
            return render.redirect(visit, f"/projects/{project}/goals")
    except InvalidGoal as error:
        form.fault(error.field, f"the {error.field} {error.reason}")
    return list_goals(visit, 422)


def remove(visit: ProjectVisit) -> Response:
    goals.remove(visit.state.control, visit.project.id, visit.path_parameter("goal"), visit.user_name)
    return render.redirect(visit, f"/projects/{visit.project.id}/goals")


def list_goals(visit: ProjectVisit, status: int = 200) -> Response:
    listed, title = goals.of_project(visit.state.control, visit.project.id), f"Goals of {visit.project.id}"
    return render.page(
        visit, "settings/goals.html", title=title, status=status, tab="Goals", goals=listed, kind_names=KIND_NAMES
    )


PAGES = (
    Page("GET", "/projects/{project}/goals", list_goals, Access.PROJECT),
    Page("POST", "/projects/{project}/goals", add, Access.OWNER),
    Page("POST", "/projects/{project}/goals/{goal}/remove", remove, Access.OWNER),
)
