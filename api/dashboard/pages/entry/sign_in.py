"""The sign-in, the sign-out, and `/`, which leads to one of them or to the projects."""

from starlette.responses import RedirectResponse, Response

from api.accounts import users
from api.dashboard.pages.entry import browser_session
from api.dashboard.pages.entry.authentication import authenticate
from api.dashboard.pages.entry.browser_session import PROJECTS, own_href
from api.dashboard.web import render
from api.dashboard.web.forms import Refusal
from api.dashboard.web.routes import SIGN_IN, Access, Page
from api.dashboard.web.visit import Visit

WRONG = "The name or the password is wrong."
"""One message for both faults: strangers do not learn which names exist."""


def root(visit: Visit) -> Response:
    """Redirect to the projects of a signed-in user, or to the sign-in."""
    return render.redirect(visit, SIGN_IN if visit.user is None else PROJECTS)


def show(visit: Visit) -> Response:
    """Return the form. A signed-in user is redirected to the page that `next` names."""
    return _form(visit) if visit.user is None else _to_next(visit)


def sign_in(visit: Visit) -> Response:
    """Check the name and the password, and redirect with a new session to the page that `next` names."""
    form = visit.form
    name, password = form.text("name", users.NAME_CHARACTERS_MAX), form.values.get("password", "")
    if not password:
        form.fault("password", "Please fill in this field.")
    if form.faults:
        return _form(visit, 422)
    outcome = authenticate(visit, name, password, "failed to sign in", WRONG)
    if isinstance(outcome, Refusal):
        return _form(visit, outcome.status, outcome.headers)
    return browser_session.start(visit, outcome.id, _to_next(visit))


def sign_out(visit: Visit) -> Response:
    return browser_session.end(visit, render.redirect(visit, SIGN_IN))


def _form(visit: Visit, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    has_users = users.count(visit.state.control) > 0
    values = {"following": visit.parameters.get("next"), "has_users": has_users}
    return render.page(visit, "entry/sign_in.html", title="Sign in", status=status, headers=headers, **values)


def _to_next(visit: Visit) -> Response:
    target = own_href(visit, visit.parameters.get("next"))
    return RedirectResponse(target, 303)


PAGES = (
    Page("GET", "/", root, Access.PUBLIC),
    Page("GET", SIGN_IN, show, Access.PUBLIC),
    Page("POST", SIGN_IN, sign_in, Access.PUBLIC),
    Page("POST", "/sign-out", sign_out, Access.PUBLIC),
)
