"""Each page of the table, requested by each kind of visitor: without a session, as a viewer, and from another site."""

import re
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

import httpx
import pytest
from starlette.testclient import TestClient

from agent.jobs import configuration, store
from agent.jobs.configuration import Configuration
from api.accounts import one_time_links, passwords, share_links, users
from api.accounts.users import Role
from api.dashboard.pages.settings import robots
from api.dashboard.pages_table import PAGES
from api.dashboard.web.render import CSP
from api.dashboard.web.routes import Access, Page
from api.reports import threads
from tests.api.dashboard.site import SAME_SITE, Dashboard, opened
from tests.processes.running import PROJECT
from tests.processes.waiting import until
from warehouse.lake.delta_table import LAST_VACUUM

WITHOUT_SESSION = (Access.PUBLIC, Access.SHARED, Access.SHARED_ALL)
FORMS_OF_EACH_VISITOR = {
    "/sign-in": Access.PUBLIC,
    "/sign-out": Access.PUBLIC,
    "/welcome/{token}": Access.PUBLIC,
    "/account": Access.SIGNED_IN,
    "/account/sign-out-everywhere": Access.SIGNED_IN,
}
"""All forms that do not require an owner, with the right that each requires."""
OTHER_SITES: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://other.testserver"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://testserver.evil.example"},
    {},
]


def request(
    client: TestClient, page: Page, values: Mapping[str, str] = MappingProxyType({"project": PROJECT}), **headers: str
) -> httpx.Response:
    """Request a page with these values in its path, and "unknown" for others."""
    path = re.sub(r"\{(\w+)(?::path)?\}", lambda match: values.get(match[1], "unknown"), page.path)
    query = {"path": "/a"} if path.endswith("/page") else None
    response: httpx.Response = client.request(page.method, path, headers=headers, params=query)
    return response


def contents(data: Path) -> dict[str, object]:
    """Return all rows of all databases of a data folder, and the size and time of each file of its lake."""
    found: dict[str, object] = {}
    for file in data.glob("*.sqlite"):
        with closing(sqlite3.connect(file)) as database:
            for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                found[f"{file.name} {name}"] = database.execute(f"SELECT * FROM {name}").fetchall()
    for file in {*(data / "lake").rglob("*.*")} - {data / "lake" / ".lock"}:
        found[str(file)] = (file.stat().st_size, file.stat().st_mtime_ns)
    return found


def existing(dashboard: Dashboard) -> dict[str, str]:
    """Return the values of each name in a path, of things that exist: a project with a hit, a share link, a job ..."""
    engine, now_s = dashboard.engine, int(time.time())
    dashboard.post_hits({"path": "/a", "userAgent": "GPTBot/1.3"})
    changes = {"repository": "https://git.example/docs", "preset": "command", "command": ("true",)}
    configuration.store(engine, PROJECT, configuration.changed(Configuration(repository=""), changes))
    invited = users.create(engine, "invited", "viewer", None, now_s)
    return {
        "project": PROJECT,
        "agent": "GPTBot",
        "share": share_links.create(engine, PROJECT, "For the board", now_s, pages="all")[1],
        "token": one_time_links.create(engine, "password", invited.id, now_s),
        "job": store.create(engine, PROJECT, "Fix it", None, 1_000_000 * now_s).job.id,
        "turn": "1",
    }


@pytest.mark.long
def test_without_a_session_or_of_an_unknown_one_a_page_leads_to_the_sign_in(dashboard: Dashboard) -> None:
    visitor, unknown = dashboard.visitor(None), dashboard.visitor(None)
    unknown.cookies.set("readership_session", "a" * 43)
    for page in PAGES:
        for client in (visitor, unknown) if page.access not in WITHOUT_SESSION else ():
            response = request(client, page, **SAME_SITE)
            assert response.status_code == 303, page.path
            assert response.headers["location"].startswith("/sign-in")


def test_viewer_may_not_open_a_page_of_owners(dashboard: Dashboard) -> None:
    viewer = dashboard.visitor("viewer")
    for page in PAGES:
        if page.access is Access.OWNER:
            assert request(viewer, page, **SAME_SITE).status_code == 403, page.path


@pytest.mark.long
def test_form_of_another_site_is_refused(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    for page in PAGES:
        if page.method == "POST":
            accepted = [headers for headers in OTHER_SITES if request(owner, page, **headers).status_code != 403]
            assert accepted == [], page.path


@pytest.mark.parametrize("role", [None, "viewer"])
def test_large_form_of_a_visitor_without_the_right_is_not_read(dashboard: Dashboard, role: Role | None) -> None:
    path = f"/projects/{PROJECT}/ai/robots"
    response = dashboard.visitor(role).post(path, content=b"a" * (robots.FORM_BYTES_MAX + 1), headers=SAME_SITE)
    assert response.status_code == (403 if role else 303)


@pytest.mark.long
def test_page_has_headers_that_protect_it(dashboard: Dashboard) -> None:
    for page in PAGES:
        response = request(dashboard.visitor("owner"), page, **({} if page.method == "GET" else SAME_SITE))
        assert response.status_code not in (401, 403, 500), page.path
        assert response.headers["x-content-type-options"] == "nosniff", page.path
        if not page.path.startswith("/assets/"):
            assert "no-store" in response.headers["cache-control"], page.path
        if response.headers.get("content-type", "").startswith("text/html"):
            assert response.headers["content-security-policy"] == CSP, page.path


@pytest.mark.long
def test_page_changes_nothing_when_opened(tmp_path: Path) -> None:
    """Open each page as an owner: a link of another site can open it."""
    with opened(tmp_path / "data", {"READERSHIP_LOAD_EVERY_S": "3600", "READERSHIP_JOBS_AT_ONCE": "0"}) as dashboard:
        values, owner = existing(dashboard), dashboard.visitor("owner")
        owner.get("/account")  # the first page of a session extends it
        until((dashboard.data / "lake" / LAST_VACUUM).exists)  # the last task of the maintenance at the start
        before = contents(dashboard.data)
        for page in PAGES:
            if page.method == "GET":
                response = request(owner, page, values)
                assert response.status_code < 400, (page.path, response.text)
                assert contents(dashboard.data) == before, page.path


def test_unknown_project_is_a_page_that_names_it(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    for page in PAGES:
        if "{project}" in page.path:
            response = request(owner, page, {"project": "nowhere"}, **SAME_SITE)
            assert response.status_code == 404, page.path
            assert response.headers["content-type"].startswith("text/html")
            assert "nowhere" in re.sub(r"<[^>]*>", "", response.text)


def test_forms_and_the_audit_log_require_an_owner() -> None:
    forms = {page.path: page.access for page in PAGES if page.method == "POST"}
    assert {path: access for path, access in forms.items() if access is not Access.OWNER} == FORMS_OF_EACH_VISITOR
    assert [page.access for page in PAGES if (page.method, page.path) == ("GET", "/account/audit")] == [Access.OWNER]


def test_pages_with_reports_and_forms_with_passwords_have_limits_of_their_own() -> None:
    limits = {(page.method, page.path): page.limit for page in PAGES}
    assert {limit for (_, path), limit in limits.items() if path.startswith("/shared/")} == {threads.SHARED}
    for path in ("", "/pages", "/export.csv", "/ai", "/errors", "/why", "/setup"):
        assert limits["GET", f"/projects/{{project}}{path}"] is threads.REPORTS
    assert limits["POST", "/sign-in"] is limits["POST", "/account"] is passwords.THREADS
    assert limits["GET", "/sign-in"] is limits["GET", "/projects/{project}/keys"] is None
