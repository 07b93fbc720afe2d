"""One-time links. GET shows a form and POST uses the link: programs that preview links send GET."""

from starlette.responses import RedirectResponse, Response

from api.accounts import attempts, one_time_links, passwords, users
from api.accounts.one_time_links import OneTimeLink
from api.accounts.users import User
from api.dashboard.pages.entry import browser_session
from api.dashboard.pages.entry.authentication import key_of
from api.dashboard.pages.entry.browser_session import PROJECTS, own_href
from api.dashboard.web import render
from api.dashboard.web.forms import Form
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import Visit
from api.errors import AccountError, InvalidName, InvalidPassword
from warehouse.control import projects

PATH = "/welcome/{token}"
HEADERS = {"Referrer-Policy": "strict-origin"}
"""With this policy the path, which has the token, is never in a Referer. `no-referrer` would make browsers post the
form with the Origin `null`, which `csrf` refuses."""
TITLES = {"first_owner": "Welcome", "password": "Choose a password", "sign_in": "Welcome"}


def show(visit: Visit) -> Response:
    """Return the form of a valid link. The link stays valid."""
    link = one_time_links.find(visit.state.control, visit.path_parameter("token"), _now_s(visit))
    return _expired(visit) if link is None else _form(visit, link)


def accept(visit: Visit) -> Response:
    """Use the link with the values of the form, and redirect with a new session to the page that `next` names."""
    control, token = visit.state.control, visit.path_parameter("token")
    link = one_time_links.find(control, token, _now_s(visit))
    if link is None:
        return _expired(visit)
    _check(visit.form, link)
    if visit.form.faults:
        return _form(visit, link, 422)
    # Hashed before the link is used: if too many hashes are computed at this moment, the link stays valid.
    password_hash = None if link.purpose == "sign_in" else passwords.hashed(visit.form.values["new_password"])
    if one_time_links.redeem(control, token, _now_s(visit)) is None:  # another request used it in the meantime
        return _expired(visit)
    try:
        user = _apply(visit, link, password_hash)
    except AccountError:  # another process removed the user or added one of the same name in the meantime
        return _expired(visit)
    attempts.passed(control, key_of(visit, user.name), _now_s(visit))
    listed = projects.list_all(control)
    first_page = f"{PROJECTS}/{listed[0].id}" if len(listed) == 1 else PROJECTS
    target = own_href(visit, visit.parameters.get("next") or first_page)
    response = RedirectResponse(target, 303)
    return browser_session.start(visit, user.id, response, "signed in with a link")


def new_password(form: Form) -> str:
    """Return the new password of a form; record a fault if it is not permitted or was not repeated."""
    password = form.values.get("new_password", "")
    try:
        passwords.check(password)
    except InvalidPassword:
        limits = f"{passwords.CHARACTERS_MIN} to {passwords.CHARACTERS_MAX}"
        form.fault("new_password", f"Use {limits} characters.")
    else:
        if form.values.get("repeated", "") != password:
            form.fault("repeated", "This is not the same password.")
    return password


def _check(form: Form, link: OneTimeLink) -> None:
    """Record the faults of the form."""
    if link.purpose == "first_owner":
        name = form.text("name", users.NAME_CHARACTERS_MAX)
        try:
            users.checked_name(name)
        except InvalidName:
            form.fault("name", f"Use 1 to {users.NAME_CHARACTERS_MAX} visible characters.")
    if link.purpose != "sign_in":
        new_password(form)


def _apply(visit: Visit, link: OneTimeLink, password_hash: str | None) -> User:
    """Create the first owner or set the password, depending on the purpose of the link, and return the user."""
    control = visit.state.control
    if link.user is None:
        name = visit.form.values["name"]
        return users.create(control, name, "owner", password_hash, _now_s(visit), users.checked_name(name))
    if link.purpose == "password":
        users.set_password(control, link.user.id, password_hash, link.user.name)
    return link.user


def _form(visit: Visit, link: OneTimeLink, status: int = 200) -> Response:
    title = TITLES[link.purpose]
    return render.page(visit, "entry/welcome.html", title=title, status=status, headers=HEADERS, link=link)


def _expired(visit: Visit) -> Response:
    title = "This link does not work any more"
    return render.page(visit, "entry/expired.html", title=title, status=404, headers=HEADERS)


def _now_s(visit: Visit) -> int:
    return int(visit.now.timestamp())


PAGES = (Page("GET", PATH, show, Access.PUBLIC), Page("POST", PATH, accept, Access.PUBLIC))
