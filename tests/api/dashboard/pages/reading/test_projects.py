"""The page of projects: readers, warnings and pages of the list; and the form of a new project."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.html import Html
from tests.api.dashboard.site import Dashboard, opened, post
from tests.processes.running import PROJECT, new_key
from warehouse.control import projects

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Dashboard]:
    """Yield a dashboard for one test that counts the projects."""
    with opened(tmp_path / "data") as opened_dashboard:
        yield opened_dashboard


def ids(client: TestClient, page: str = "1") -> list[str]:
    """Return the ids of the projects on a page of the list."""
    response = client.get(f"/projects?page={page}")
    assert response.status_code == 200, response.text
    return [link.removeprefix("/projects/") for link in Html(response.text).links() if link.count("/") == 2]


def test_project_has_its_readers_of_30_days_and_its_last_view(own: Dashboard) -> None:
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    own.post_hits(
        {"path": "/", "userAgent": FIREFOX},
        {"path": "/", "userAgent": "GPTBot/1.3"},
        {"path": "/", "userAgent": "ClaudeBot/1.0"},
        {"path": "/", "userAgent": FIREFOX, "timestamp": old},
    )
    text = Html(own.visitor("viewer").get("/projects").text).text
    assert "1 by people 2 by AI" in text
    assert re.search(r"Last view \d+ seconds? ago", text)
    assert f"Views of {PROJECT} in the last 30 days: 1 by people and 2 by AI" in text


def test_project_without_a_view_leads_to_its_set_up(own: Dashboard) -> None:
    page = Html(own.visitor("viewer").get("/projects").text)
    assert "No page views yet" in page.text
    assert f"/projects/{PROJECT}/setup" in page.links()
    assert "0 by AI" not in page.text


def test_ai_is_not_set_up_if_only_the_website_script_counts(own: Dashboard) -> None:
    headers = {"Origin": "https://a.example", "User-Agent": FIREFOX}
    own.client.post(f"/v1/analytics/{PROJECT}/hits", json={"url": "https://a.example/"}, headers=headers)
    text = Html(own.visitor("viewer").get("/projects").text).text
    assert "1 by people AI: not set up" in text
    own.client.post(
        f"/v1/analytics/{PROJECT}/hits", json={"path": "/"}, headers={**headers, "User-Agent": "GPTBot/1.3"}
    )
    assert "1 by people 1 by AI" in Html(own.visitor("viewer").get("/projects").text).text


def test_silent_source_is_a_warning_in_the_names_of_the_dashboard(own: Dashboard) -> None:
    day = datetime.now(UTC) - timedelta(days=9)
    own.post_hits({"path": "/", "userAgent": FIREFOX, "timestamp": day.isoformat()})
    text = Html(own.visitor("viewer").get("/projects").text).text
    assert f"“Your server” has had no view for 9 days, since {day:%b} {day.day}, {day.year}." in text


@pytest.mark.long
def test_list_has_pages_of_20(own: Dashboard) -> None:
    for number in range(40):
        projects.create(own.engine, f"p{number:02}", (), 0)
    client = own.visitor("owner")
    assert ids(client) == [f"p{number:02}" for number in range(20)]
    assert ids(client, "2") == [f"p{number:02}" for number in range(20, 40)]
    assert ids(client, "3") == [PROJECT]
    for invalid in ("0", "4", "x", "9" * 30):
        response = client.get(f"/projects?page={invalid}")
        assert response.status_code == 400
        assert "There is no page" in response.text


@pytest.mark.parametrize(
    ("id", "address"),
    [("new-site", "https://new.example"), ("a-page", "HTTPS://New.example/about"), ("a-host", "new.example")],
)
def test_owner_creates_a_project_with_the_address_of_its_site(dashboard: Dashboard, id: str, address: str) -> None:
    response = post(dashboard.visitor("owner"), "/projects", id=id, origin=address)
    assert response.headers["location"] == f"/projects/{id}/setup"
    assert projects.find(dashboard.engine, id).origins == ("https://new.example",)


@pytest.mark.parametrize(("id", "origin"), [("open", " "), ("star", "*")])
def test_project_without_an_origin_allows_every_site(dashboard: Dashboard, id: str, origin: str) -> None:
    post(dashboard.visitor("owner"), "/projects", id=id, origin=origin)
    assert projects.find(dashboard.engine, id).origins == ("*",)


@pytest.mark.parametrize(
    ("id", "origin", "message"),
    [
        ("", "", "Please fill in this field"),
        ("Upper", "", "lower-case letters"),
        ("a b", "", "lower-case letters"),
        ("x" * 64, "", "at most 63 characters"),
        ("<script>alert(1)</script>", "", "lower-case letters"),
        (PROJECT, "", "exists"),
        ("fine", "not an origin", "origin"),
        ("fine", "ftp://example.com/path", "origin"),
        ("fine", "http://[example.com", "origin"),
        ("fine", "<img src=x onerror=alert(1)>", "origin"),
    ],
)
def test_invalid_project_is_explained_beside_its_field(
    dashboard: Dashboard, id: str, origin: str, message: str
) -> None:
    before = projects.list_all(dashboard.engine)
    response = post(dashboard.visitor("owner"), "/projects", id=id, origin=origin)
    assert response.status_code == 422
    page = Html(response.text)
    assert message in page.text
    entered = {a["name"]: a["value"] for tag, a in page.tags if tag == "input" and "name" in a}
    assert (entered["id"], entered["origin"]) == (id, origin)
    assert [a["name"] for tag, a in page.tags if a.get("aria-invalid")] == ["origin" if id == "fine" else "id"]
    assert projects.list_all(dashboard.engine) == before


def test_viewer_has_no_form_and_may_not_create(dashboard: Dashboard) -> None:
    client = dashboard.visitor("viewer")
    assert "New project" not in client.get("/projects").text
    assert post(client, "/projects", id="forbidden").status_code == 403


def test_other_projects_are_not_counted(own: Dashboard) -> None:
    key = new_key(own.data, "other")
    own.post_hits({"path": "/", "userAgent": FIREFOX}, project="other", key=key)
    text = Html(own.visitor("viewer").get("/projects").text).text
    assert "1 by people 0 by AI" in text
    assert text.count("No page views yet") == 1
