"""Each page of the table, requested by each kind of visitor: without a session, as a viewer, and from another site."""

import re
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from api.accounts import passwords
from api.accounts.users import Role
from api.dashboard.pages.settings import robots
from api.dashboard.pages_table import PAGES
from api.dashboard.web.render import CSP
from api.dashboard.web.routes import Access, Page
from api.reports import threads
from tests.api.dashboard.site import SAME_SITE, Dashboard
from tests.processes.running import PROJECT
from tests.stores import sql
from warehouse.database.pool import Pool

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


def request(client: TestClient, page: Page, **headers: str) -> httpx.Response:
    path = re.sub(r"\{(\w+)(?::path)?\}", lambda match: PROJECT if match[1] == "project" else "unknown", page.path)
    response: httpx.Response = client.request(page.method, path, headers=headers)
    return response


def contents(engine: Pool) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables."""
    return {name: sql.rows(engine, f"SELECT * FROM {name}") for name in sql.table_names(engine)}


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
def test_page_has_headers_that_protect_it_and_changes_nothing_when_opened(dashboard: Dashboard) -> None:
    """Open each page as an owner and compare all tables of the control database: a link of another site can open it."""
    for page in PAGES:
        visitor = dashboard.visitor("owner")
        visitor.get("/account")  # the first page of a session extends it
        before = contents(dashboard.engine)
        response = request(visitor, page, **({} if page.method == "GET" else SAME_SITE))
        assert response.status_code not in (401, 403, 500), page.path
        assert page.method == "POST" or contents(dashboard.engine) == before, page.path
        assert response.headers["x-content-type-options"] == "nosniff", page.path
        if not page.path.startswith("/assets/"):
            assert "no-store" in response.headers["cache-control"], page.path
        if response.headers.get("content-type", "").startswith("text/html"):
            assert response.headers["content-security-policy"] == CSP, page.path


def test_unknown_project_is_a_page_that_names_it(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    for page in PAGES:
        if "{project}" in page.path:
            path = re.sub(r"\{\w+(?::path)?\}", "nowhere", page.path)
            response = owner.request(page.method, path, headers=SAME_SITE)
            assert response.status_code == 404, path
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
