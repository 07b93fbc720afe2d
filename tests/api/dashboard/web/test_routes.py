"""Rights of the sender of a page, checked before the page's function runs. The control database is real."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient

from api.accounts import sessions, share_links, users
from api.accounts.users import Role, User
from api.dashboard.web.routes import IS_PAGE, Access, Page, routes
from api.dashboard.web.visit import ProjectVisit, Visit
from api.http.problems import Problem
from tests.api.dashboard.site import SAME_SITE
from warehouse.control import database, projects
from warehouse.database.pool import Pool
from warehouse.errors import ProjectNotFound
from warehouse.folder import sqlite_url

PATHS = {Access.PUBLIC: "/public", Access.SIGNED_IN: "/signed-in", Access.PROJECT: "/projects/{project}"}
PATHS |= {Access.OWNER: "/projects/{project}/owner", Access.SHARED: "/shared/{share}"}


def now_s() -> int:
    return int(time.time())


@dataclass
class Pages:
    """An app with a page for each right, whose functions record the visits that they get."""

    engine: Pool
    visits: list[Visit]
    client: TestClient

    def session(self, role: Role) -> User:
        """Create a user of this role, and send its session with all later requests."""
        user = users.create(self.engine, role, role, None, now_s())
        self.client.cookies.set("readership_session", sessions.start(self.engine, user.id, now_s()))
        return user

    @property
    def visit(self) -> Visit:
        """Return the only visit."""
        (visit,) = self.visits
        return visit


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    projects.create(engine, "site", (), now_s())
    visits: list[Visit] = []

    def respond(visit: Visit) -> Response:
        visits.append(visit)
        return PlainTextResponse("the page")

    table = [Page("GET", path, respond, access) for access, path in PATHS.items()]
    table.append(Page("POST", PATHS[Access.OWNER], respond, Access.OWNER, body_bytes_max=20))
    app = Starlette(routes=list(routes(table)), exception_handlers={Problem: _status, ProjectNotFound: _status})
    state: Any = SimpleNamespace(control=engine, settings=SimpleNamespace(base_url=""))
    with TestClient(app, follow_redirects=False) as client:
        client.app_state["running"] = state
        yield Pages(engine, visits, client)
    engine.close()


def _status(request: Any, error: Exception) -> Response:
    assert getattr(request.state, IS_PAGE)
    return PlainTextResponse(getattr(error, "kind", type(error).__name__), 400)


def test_public_page_has_the_user_if_there_is_a_session(pages: Pages) -> None:
    assert pages.client.get("/public").text == "the page"
    user = pages.session("viewer")
    pages.client.get("/public")
    assert [visit.user and visit.user.id for visit in pages.visits] == [None, user.id]


def test_head_is_answered_by_the_page(pages: Pages) -> None:
    assert pages.client.head("/public").status_code == 200
    assert pages.visit.request.method == "HEAD"


def test_page_without_a_session_leads_to_the_sign_in_and_back(pages: Pages) -> None:
    for path in ("/signed-in", "/projects/site", "/projects/site/owner"):
        for method in ("GET", "HEAD"):
            answer = pages.client.request(method, f"{path}?period=7d&path=/a%26b")
            assert (answer.status_code, answer.headers["cache-control"]) == (303, "no-store")
            assert answer.headers["location"] == f"/sign-in?next={quote(f'{path}?period=7d&path=/a%26b', safe='')}"
    assert pages.visits == []


def test_form_without_a_session_leads_to_the_sign_in_and_not_back(pages: Pages) -> None:
    answer = pages.client.post("/projects/site/owner?a=b", headers=SAME_SITE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def test_part_of_a_page_without_a_session_lets_htmx_open_the_sign_in(pages: Pages) -> None:
    answer = pages.client.get("/signed-in", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["hx-redirect"]) == (200, "/sign-in?next=%2Fsigned-in")
    assert answer.headers["cache-control"] == "no-store"


def test_viewer_opens_a_project_and_not_the_page_of_an_owner(pages: Pages) -> None:
    user = pages.session("viewer")
    assert pages.client.get("/projects/site").status_code == 200
    assert pages.client.get("/projects/site/owner").text == "forbidden"
    assert pages.client.post("/projects/site/owner", data={"a": "b"}, headers=SAME_SITE).text == "forbidden"
    assert (pages.visit.user and pages.visit.user.id, pages.visit.project) == (
        user.id,
        projects.find(pages.engine, "site"),
    )


def test_owner_posts_a_form_of_the_permitted_size_from_a_page_of_the_dashboard(pages: Pages) -> None:
    user = pages.session("owner")
    path = "/projects/site/owner"
    assert pages.client.post(path, data={"a": "b"}, headers={"Sec-Fetch-Site": "cross-site"}).text == "forbidden"
    assert pages.client.post(path, data={"a": "b" * 19}, headers=SAME_SITE).status_code == 400
    assert pages.client.post(path, data={"a": "b"}, headers=SAME_SITE).status_code == 200
    assert (pages.visit.user and pages.visit.user.id, pages.visit.form.values) == (user.id, {"a": "b"})


def test_missing_project_is_not_found(pages: Pages) -> None:
    pages.session("owner")
    for path in ("/projects/nowhere", "/projects/nowhere/owner"):
        assert pages.client.get(path).text == "ProjectNotFound"
    assert pages.visits == []


def test_rights_that_end_while_the_form_is_sent_are_checked_after_it(pages: Pages) -> None:
    user = pages.session("owner")
    users.create(pages.engine, "another", "owner", None, now_s())

    def body() -> Iterator[bytes]:
        users.set_role(pages.engine, user.id, "viewer")
        yield b"a=b"

    headers = {**SAME_SITE, "Content-Type": "application/x-www-form-urlencoded"}
    assert pages.client.post("/projects/site/owner", content=body(), headers=headers).text == "forbidden"
    assert pages.visits == []


def test_share_link_opens_its_project_until_it_is_revoked(pages: Pages) -> None:
    pages.session("viewer")  # a shared page has no user, also if the visitor has a session
    projects.create(pages.engine, "another", (), now_s())
    share, token = share_links.create(pages.engine, "site", "For the board", now_s())
    assert pages.client.get(f"/shared/{token}").status_code == 200
    assert (pages.visit.share, pages.visit.user) == (share, None)
    assert pages.visit.project == projects.find(pages.engine, "site")
    assert pages.client.get("/shared/unknown").text == "not-found"
    share_links.revoke(pages.engine, share.id, now_s())
    assert pages.client.get(f"/shared/{token}").text == "not-found"


def test_visitor_of_a_link_to_all_pages_or_with_a_session_may_open_the_other_pages(pages: Pages) -> None:
    pages.session("viewer")
    pages.client.get("/projects/site")
    for shown in ("overview", "all"):
        pages.client.get(f"/shared/{share_links.create(pages.engine, 'site', shown, now_s(), pages=shown)[1]}")
    assert [visit.has_pages for visit in pages.visits if isinstance(visit, ProjectVisit)] == [True, False, True]


def test_two_functions_for_one_method_of_a_path_are_a_bug() -> None:
    page = Page("GET", "/", lambda visit: Response(), Access.PUBLIC)
    with pytest.raises(AssertionError):
        routes([page, page])
