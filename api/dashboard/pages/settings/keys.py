"""The page of a project's API keys: created, listed and revoked."""

import re
from datetime import date, datetime, time, timedelta
from typing import cast, get_args

from starlette.responses import Response

from api.accounts import keys
from api.accounts.keys import Key, Scope
from api.dashboard.pages.settings import recipes
from api.dashboard.web import render
from api.dashboard.web.forms import Form
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import ProjectVisit
from api.errors import KeyExists
from api.http.problems import Problem

SCOPES: dict[Scope, tuple[str, str]] = {
    "read": ("Read", "Reads reports, classifications and agent jobs. For a program that shows or exports counts."),
    "ingest": ("Send views", "Sends page views, and reads nothing. For a server, an edge network or a log shipper."),
    "write": ("Everything", "Reads, sends, and starts agent jobs. For your own scripts."),
}
"""Name and use of each scope."""
EXPIRIES = {"never": "Never", "30": "In 30 days", "90": "In 90 days", "365": "In a year", "date": "On a date"}
DAYS = {"30": 30, "90": 90, "365": 365}
"""Days until a key expires, by the values of the form that name a number of days."""
NAME_CHARACTERS_MAX = 100
YEARS_MAX = 100
_ID = re.compile(r"[0-9a-f]{12}")


def create_key(visit: ProjectVisit) -> Response:
    """Create a key and show its token, once. The same form posted again creates no second key."""
    form = visit.form
    name = form.text("name", NAME_CHARACTERS_MAX)
    scope = form.choice("scope", get_args(Scope))
    expires_s = _expires_s(visit, form)
    id = form.values.get("id", "")
    if _ID.fullmatch(id) is None:
        form.fault("name", "The form is incomplete: open the page again.")
    if not name.isprintable():
        form.fault("name", "Use letters, digits, spaces and punctuation.")
    if form.faults:
        return list_keys(visit, form)
    now_s = int(visit.now.timestamp())
    try:
        control, by = visit.state.control, visit.user_name
        key, token = keys.create(control, visit.project.id, name, cast("Scope", scope), expires_s, now_s, id, by)
    except KeyExists:
        return list_keys(visit, repeated_id=id)
    return list_keys(visit, created=key, token=token)


def revoke_key(visit: ProjectVisit) -> Response:
    """Revoke a key of the project for good."""
    id = visit.path_parameter("key")
    if id not in [key.id for key in keys.list_all(visit.state.control, visit.project.id)]:
        raise Problem("not-found", f"the project {visit.project.id} has no key with the id {id[:40]}")
    keys.revoke(visit.state.control, id, int(visit.now.timestamp()), visit.user_name)
    return render.redirect(visit, f"/projects/{visit.project.id}/keys", notice="revoked")


def _expires_s(visit: ProjectVisit, form: Form) -> int | None:
    """Return the time at which the key expires, in seconds since 1970; None for never.

    A key with a last day is valid until the end of that day in the viewer's time zone. A key for a number of days
    expires that many days from now.
    """
    choice = form.choice("expires", tuple(EXPIRIES))
    if choice != "date":
        return int((visit.now + timedelta(days=DAYS[choice])).timestamp()) if choice in DAYS else None
    try:
        last = date.fromisoformat(form.values.get("day", ""))
    except ValueError:
        form.fault("day", "Choose a day, such as 2027-03-31.")
        return None
    today = visit.now.astimezone(visit.zone).date()
    if not today <= last < today.replace(year=today.year + YEARS_MAX, day=1):
        form.fault("day", f"Choose a day from today on, within {YEARS_MAX} years.")
        return None
    return int(datetime.combine(last + timedelta(days=1), time.min, visit.zone).timestamp())


def list_keys(
    visit: ProjectVisit,
    form: Form | None = None,
    created: Key | None = None,
    token: str | None = None,
    repeated_id: str | None = None,
) -> Response:
    """Show the keys of the project, and an empty form without `form`."""
    form = form or Form()
    listed = keys.list_all(visit.state.control, visit.project.id)
    now_s = visit.now.timestamp()
    return render.page(
        visit,
        "keys.html",
        title="API keys",
        status=422 if form.faults else 409 if repeated_id else 200,
        tab="API keys",
        form=form,
        address=recipes.of(visit).address,
        valid=[key for key in reversed(listed) if key.is_valid(now_s)],
        ended=[key for key in reversed(listed) if not key.is_valid(now_s)],
        scopes=SCOPES,
        expiries=list(EXPIRIES.items()),
        created=created,
        token=token,
        repeated=next((key for key in listed if key.id == repeated_id), None),
        is_repeated=repeated_id is not None,
        new_id=keys.new_id(),
        is_revoked=visit.parameters.get(render.NOTICE) == "revoked" and created is None,
        time_of=lambda seconds: datetime.fromtimestamp(seconds, visit.zone),
    )


PAGES = (
    Page("GET", "/projects/{project}/keys", list_keys, Access.PROJECT),
    Page("POST", "/projects/{project}/keys", create_key, Access.OWNER),
    Page("POST", "/projects/{project}/keys/{key}/revoke", revoke_key, Access.OWNER),
)
