"""Errors as pages for browsers, and as problems for everything else."""

import gzip

import pytest

from tests.api.dashboard.site import Dashboard
from tests.processes.running import PROJECT

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_unknown_path_is_a_page_for_a_browser(dashboard: Dashboard) -> None:
    response = dashboard.client.get("/nowhere", headers=BROWSER)
    assert (response.status_code, response.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing at this path." in response.text
    assert response.headers["x-request-id"] in response.text


def test_error_page_under_a_project_has_its_tabs_for_users(dashboard: Dashboard) -> None:
    for role, path, has_tabs in (
        ("viewer", f"/projects/{PROJECT}/nowhere", True),
        ("viewer", f"/projects/{PROJECT}/ai/agents/Nobody", True),
        ("viewer", f"/projects/{PROJECT}x/nowhere", False),
        ("viewer", "/nowhere", False),
        (None, f"/projects/{PROJECT}/nowhere", False),
    ):
        response = dashboard.visitor(role).get(path, headers=BROWSER)
        assert response.status_code == 404
        assert (f'href="/projects/{PROJECT}/setup"' in response.text) is has_tabs, path
        assert (f'href="/projects/{PROJECT}"' in response.text) is has_tabs, path


@pytest.mark.parametrize("path", ["/nowhere", "/v1/nowhere", "/v1/analytics/site/views"])
def test_program_gets_a_problem(dashboard: Dashboard, path: str) -> None:
    headers = {"Accept": "*/*"} if path == "/nowhere" else BROWSER
    response = dashboard.client.get(path, headers=headers)
    assert response.headers["content-type"] == "application/problem+json"


def test_static_file_is_cached_for_ever_and_an_unknown_one_is_not_found(dashboard: Dashboard) -> None:
    address = "/static/" + dashboard.client.get("/nowhere", headers=BROWSER).text.split("/static/", 2)[2].split('"')[0]
    response = dashboard.client.get(address)
    assert (response.status_code, response.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert response.headers["content-type"].startswith("text/css")
    for other in ("/static/app.css", "/static/..%2f..%2fapp.py", "/static/vendor/README.md"):
        assert dashboard.client.get(other).status_code == 404


def test_page_and_static_file_are_compressed_if_the_browser_accepts_it(dashboard: Dashboard) -> None:
    page = dashboard.client.get("/nowhere", headers=BROWSER | {"Accept-Encoding": "gzip"})
    assert page.headers["content-encoding"] == "gzip"
    address = "/static/" + page.text.split("/static/", 2)[2].split('"')[0]
    with dashboard.client.stream("GET", address, headers={"Accept-Encoding": "gzip"}) as response:
        packed = b"".join(response.iter_raw())
    plain = dashboard.client.get(address, headers={"Accept-Encoding": "identity"})
    assert (response.headers["content-encoding"], response.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert ("content-encoding" in plain.headers, plain.headers["vary"]) == (False, "Accept-Encoding")
    assert gzip.decompress(packed) == plain.content
    assert len(packed) * 2 < len(plain.content)
