"""The signed-in user: the password, all sessions, and for owners the list of users."""

from datetime import UTC, datetime

from starlette.responses import Response

from api.accounts import passwords, sessions, users
from api.accounts.users import User
from api.dashboard.pages.entry import browser_session
from api.dashboard.pages.entry.authentication import authenticate
from api.dashboard.pages.entry.welcome import new_password
from api.dashboard.web import render
from api.dashboard.web.forms import Refusal
from api.dashboard.web.routes import SIGN_IN, Access, Page
from api.dashboard.web.visit import Visit

ACCOUNT = "/account"


def change_password(visit: Visit) -> Response:
    """Set a new password, and end all sessions but the one of this browser, which gets a new token."""
    user, form = _user(visit), visit.form
    password = new_password(form)
    if form.faults:
        return show(visit, 422)
    if user.has_password:
        old = form.values.get("password", "")
        outcome = authenticate(visit, user.name, old, "entered a wrong password", "This is not your password.")
        if isinstance(outcome, Refusal):
            return show(visit, outcome.status, outcome.headers)
    users.set_password(visit.state.control, user.id, passwords.hashed(password), user.name)
    response = render.redirect(visit, ACCOUNT, notice="password")
    return browser_session.start(visit, user.id, response, action=None)


def sign_out_everywhere(visit: Visit) -> Response:
    """End all sessions of the user, also the one of this browser."""
    sessions.end_all(visit.state.control, _user(visit).id)
    return browser_session.end(visit, render.redirect(visit, SIGN_IN))


def show(visit: Visit, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return the page of the user."""
    listed = users.list_all(visit.state.control) if visit.can_change else []
    rows = [(each, each.last_seen_s and datetime.fromtimestamp(each.last_seen_s, UTC)) for each in listed]
    is_changed = visit.parameters.get("notice") == "password"
    values = {"rows": rows, "is_changed": is_changed}
    return render.page(visit, "entry/account.html", title="Your account", status=status, headers=headers, **values)


def _user(visit: Visit) -> User:
    assert visit.user is not None
    return visit.user


PAGES = (
    Page("GET", ACCOUNT, show, Access.SIGNED_IN),
    Page("POST", ACCOUNT, change_password, Access.SIGNED_IN),
    Page("POST", "/account/sign-out-everywhere", sign_out_everywhere, Access.SIGNED_IN),
)
