"""Errors as pages, for requests to pages and for unknown paths that a browser opens."""

import re
from dataclasses import replace
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from api.dashboard.web import render, routes
from api.dashboard.web.routes import IS_PAGE
from api.dashboard.web.visit import Visit
from api.http import problems
from api.http.headers import header
from api.http.problems import KINDS
from warehouse.control import projects
from warehouse.database.pool import PoolError
from warehouse.errors import ProjectNotFound

_PROJECT = re.compile(r"/projects/([^/]+)(?:/|$)")
_API = ("/v1/", "/v2/", "/openapi.json", "/healthz", "/readyz", "/metrics")


def is_wanted(request: Request) -> bool:
    """Return whether the error of a request is a page: for pages, and for browsers at a path outside of the API."""
    if getattr(request.state, IS_PAGE, False):
        return True
    is_api = request.scope["path"].startswith(_API) or request.scope.get("endpoint") is not None
    return not is_api and request.method in ("GET", "HEAD") and "text/html" in (header(request, b"accept") or "")


def respond(request: Request, error: Exception, visit: Visit) -> Response:
    """Return the error page of an exception of `problems.TABLE`, with the tabs of the project that the path names."""
    problem = problems.of(request, error)
    kind, headers = KINDS[problem.kind], dict(problem.headers)
    if kind.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        visit = _with_project(visit)
    return render.page(visit, "error.html", status=kind.status, headers=headers, title=kind.title, problem=problem)


def _with_project(visit: Visit) -> Visit:
    """Return the visit with the signed-in user and the project of the path; unchanged if they cannot be read."""
    try:
        user = routes.user_of(visit)
        match = _PROJECT.match(visit.request.scope["path"])
        if user is None or match is None:
            return visit
        return replace(visit, user=user, project=projects.find(visit.state.control, match[1]))
    except (ProjectNotFound, PoolError):
        return visit
