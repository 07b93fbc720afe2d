"""Pages as routes: the rights of the sender are checked here, once, before a page's function runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Literal, cast

from anyio import CapacityLimiter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from api.accounts import sessions, share_links
from api.accounts.share_links import ShareLink
from api.accounts.users import User
from api.dashboard.web import cookies, csrf, forms, links
from api.dashboard.web.forms import Form
from api.dashboard.web.visit import ProjectVisit, Visit
from api.http.problems import Problem
from api.reports import threads
from api.state import state_of
from warehouse.control import projects

HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""Headers of each response that does not set them itself, such as a redirect or a file."""
SHARED_HEADERS = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}
"""Headers of a shared page, whose address is a secret."""
SIGN_IN = "/sign-in"
IS_PAGE = "is_page"
"""Name in the state of a request to a page, whose errors are pages too."""


class Access(Enum):
    """The right that a page requires.

    PUBLIC: none. SIGNED_IN: a session. PROJECT: a session; the path has an existing `project`. OWNER: a session of an
    owner; the project exists, if the path has one. SHARED: a valid share link, whose token is in the path. SHARED_ALL:
    a share link that opens all pages of counts.
    """

    PUBLIC = "public"
    SIGNED_IN = "signed in"
    PROJECT = "project"
    OWNER = "owner"
    SHARED = "shared"
    SHARED_ALL = "all shared"


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a form that a page posts, with the function that responds to it in a thread.

    The function gets a `ProjectVisit` if the path has a project or a share link.
    `body_bytes_max` is the maximum size of the form. `limit` is the limit on the number of pages that run at once.
    """

    method: Literal["GET", "POST"]
    path: str
    respond: Callable[[ProjectVisit], Response]
    access: Access
    body_bytes_max: int = forms.BODY_BYTES_MAX
    limit: CapacityLimiter | None = None


class SignInRequired(Exception):
    """The request has no valid session."""


def routes(pages: Sequence[Page]) -> tuple[Route, ...]:
    """Return one route per path of the pages."""
    by_path: dict[str, dict[str, Page]] = {}
    for page in pages:
        methods = by_path.setdefault(page.path, {})
        assert page.method not in methods, page
        methods[page.method] = page
    return tuple(Route(path, _endpoint(methods), methods=list(methods)) for path, methods in by_path.items())


def _endpoint(pages: Mapping[str, Page]) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        setattr(request.state, IS_PAGE, True)
        page = pages["GET" if request.method == "HEAD" else request.method]
        form = Form()
        try:
            if page.method == "POST":
                csrf.require_own_origin(request, state_of(request).settings.base_url)
                # Checked before the body is read, so that a stranger cannot send a large one, and again after it.
                await run_in_threadpool(lambda: authorise(_visit(request), page.access))
                form = await forms.read(request, page.body_bytes_max)
            visit = cast("ProjectVisit", await run_in_threadpool(lambda: authorise(_visit(request, form), page.access)))
            if page.limit is None:
                response = await run_in_threadpool(page.respond, visit)
            else:
                response = await threads.run(page.limit, request.receive, page.respond, visit)
        except SignInRequired:
            response = _to_sign_in(_visit(request))
        if page.access in (Access.SHARED, Access.SHARED_ALL):
            response.headers.update(SHARED_HEADERS)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return endpoint


def _visit(request: Request, form: Form | None = None) -> Visit:
    return Visit(request, state_of(request), datetime.now(UTC), form=form or Form())


def authorise(visit: Visit, access: Access) -> Visit:
    """Return the visit with its user, project and share link.

    Raises:
        SignInRequired
        Problem: `forbidden`, or `not-found` for a share link.
        ProjectNotFound
    """
    if access in (Access.SHARED, Access.SHARED_ALL):
        return _shared(visit, access)
    user = user_of(visit)
    if access is Access.PUBLIC:
        return replace(visit, user=user)
    if user is None:
        raise SignInRequired
    if access is Access.OWNER and user.role != "owner":
        raise Problem("forbidden", f"{user.name} may look at everything; only an owner may change something")
    visit = replace(visit, user=user)
    id = visit.request.path_params.get("project")
    return visit if id is None else _of_project(visit, id)


def user_of(visit: Visit) -> User | None:
    token = cookies.session_token(visit.request, visit.base_url)
    return None if token is None else sessions.find(visit.state.control, token, int(visit.now.timestamp()))


def _shared(visit: Visit, access: Access) -> Visit:
    share = share_links.find(visit.state.control, visit.path_parameter("share"))
    if share is None:
        raise Problem("not-found", "this link was revoked, or it is incomplete: ask for a new one")
    if access is Access.SHARED_ALL and share.pages != "all":
        raise Problem("not-found", "this link opens the overview only: ask for a link to all pages")
    return _of_project(visit, share.project, share)


def _of_project(visit: Visit, id: str, share: ShareLink | None = None) -> ProjectVisit:
    project = projects.find(visit.state.control, id)
    return ProjectVisit(
        visit.request, visit.state, visit.now, visit.user, form=visit.form, project=project, share=share
    )


def _to_sign_in(visit: Visit) -> Response:
    """Redirect to the sign-in, which then returns to this page, or to the projects if a form was posted."""
    request = visit.request
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    following = path if request.method in ("GET", "HEAD") else None
    target = links.href(visit.base_url, SIGN_IN, {"next": following})
    if visit.is_htmx:
        return Response(headers={"HX-Redirect": target})
    return RedirectResponse(target, 303)
