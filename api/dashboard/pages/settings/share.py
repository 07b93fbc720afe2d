"""Share links: read-only links to the pages of counts of a project, for people without an account."""

import re
from datetime import UTC, datetime
from typing import cast, get_args

from starlette.responses import Response

from api.accounts import share_links
from api.accounts.share_links import Pages, ShareLink
from api.dashboard.web import render
from api.dashboard.web.routes import Access, Page
from api.dashboard.web.visit import ProjectVisit
from api.http.problems import Problem

NAME_CHARACTERS_MAX, FIRST_CHARACTERS_MAX = 100, 2_000
PAGE_NAMES: dict[Pages, str] = {"overview": "Overview only", "all": "Overview, AI readers, Pages and Errors"}
FIRST_PAGES: dict[str, re.Pattern[str]] = {
    "overview": re.compile(r"(\?[^#\s]*)?"),
    "all": re.compile(
        r"(/(ai(/agents/(?!(\.|%2[eE])+(\?|$))[^/\\?#\s]+)?|pages|errors"
        r"|page(?=\?([^#\s]*&)?path=(/|%2[fF])[^&#\s]*(?<!\*)(?<!%2[aA])(&|$))))?(\?[^#\s]*)?"
    ),
}
"""Paths and queries with which a link can begin, by the pages that it opens."""


def create(visit: ProjectVisit) -> Response:
    """Respond to POST /projects/{project}/share: create a link, and show its address once.

    A name that another link has is refused: a browser that loads the page again posts the form again.
    """
    name = visit.form.text("name", NAME_CHARACTERS_MAX)
    if not name.isprintable():
        visit.form.fault("name", "Use letters, digits, spaces and punctuation.")
    pages = visit.form.choice("pages", get_args(Pages))
    first = visit.form.text("first", FIRST_CHARACTERS_MAX, required=False)
    if pages in FIRST_PAGES and not FIRST_PAGES[pages].fullmatch(first):
        visit.form.fault("first", "Use the path and query of one of these pages, such as /ai?period=7d.")
    if name in [link.name for link in _valid(visit)]:
        visit.form.fault("name", "Another link has this name. Its address was shown once and cannot be shown again.")
    if visit.form.faults:
        return list_links(visit, status=422)
    control, now_s = visit.state.control, int(visit.now.timestamp())
    created = share_links.create(control, visit.project.id, name, now_s, visit.user_name, cast("Pages", pages))
    visit.form.values.clear()
    return list_links(visit, created=created, first=first)


def revoke(visit: ProjectVisit) -> Response:
    project, id = visit.project.id, visit.path_parameter("link")
    if id not in [link.id for link in share_links.list_all(visit.state.control, project)]:
        raise Problem("not-found", f"the project {project!r} has no share link with this id")
    share_links.revoke(visit.state.control, id, int(visit.now.timestamp()), visit.user_name)
    return render.redirect(visit, f"/projects/{project}/share")


def list_links(
    visit: ProjectVisit, status: int = 200, created: tuple[ShareLink, str] | None = None, first: str = ""
) -> Response:
    """Respond to GET /projects/{project}/share. `created` is a new link with its token, `first` its first page."""
    return render.page(
        visit,
        "settings/share.html",
        title=f"Share {visit.project.id}",
        status=status,
        tab="Share",
        links=_valid(visit)[::-1],
        page_names=PAGE_NAMES,
        time_of=lambda seconds: datetime.fromtimestamp(seconds, UTC),
        created=created[0] if created else None,
        address=f"{visit.public_url}/shared/{created[1]}{first}" if created else None,
    )


def _valid(visit: ProjectVisit) -> list[ShareLink]:
    """Return the links that are not revoked, the oldest first."""
    links = share_links.list_all(visit.state.control, visit.project.id)
    return [link for link in links if link.revoked_s is None]


PAGES = (
    Page("GET", "/projects/{project}/share", list_links, Access.PROJECT),
    Page("POST", "/projects/{project}/share", create, Access.OWNER),
    Page("POST", "/projects/{project}/share/{link}/revoke", revoke, Access.OWNER),
)
