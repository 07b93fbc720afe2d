"""The page of projects: readers, warnings and pages of the list; and the form of a new project."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.html import Html
from tests.api.dashboard.site import FIREFOX, Dashboard, opened, post
from tests.processes.running import PROJECT, new_key
from warehouse.control import projects


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
    key = new_key(own.data, "other")
    assert Html(own.visitor("viewer").get("/projects").text).text.count("No page views yet") == 1
    own.post_hits({"path": "/", "userAgent": FIREFOX}, project="other", key=key)
    text = Html(own.visitor("viewer").get("/projects").text).text
    assert "1 by people 2 by AI" in text
    assert "1 by people 0 by AI" in text


def test_ai_is_not_set_up_if_only_the_website_script_counts(own: Dashboard) -> None:
    viewer = own.visitor("viewer")
    page = Html(viewer.get("/projects").text)
    assert "No page views yet" in page.text
    assert f"/projects/{PROJECT}/setup" in page.links()
    assert "0 by AI" not in page.text
    hits, headers = f"/v1/analytics/{PROJECT}/hits", {"Origin": "https://a.example", "User-Agent": FIREFOX}
    own.client.post(hits, json={"url": "https://a.example/"}, headers=headers)
    assert "1 by people AI: not set up" in Html(viewer.get("/projects").text).text
    own.client.post(hits, json={"path": "/"}, headers={**headers, "User-Agent": "GPTBot/1.3"})
    assert "1 by people 1 by AI" in Html(viewer.get("/projects").text).text


def test_silent_source_is_a_warning_in_the_names_of_the_dashboard(own: Dashboard) -> None:
    day = datetime.now(UTC) - timedelta(days=9)
    own.post_hits({"path": "/", "userAgent": FIREFOX, "timestamp": day.isoformat()})
    page = own.visitor("viewer").get("/projects").text
    text = Html(page).text
    assert f"“Your server” has had no view for 9 days, since {day:%b} {day.day}, {day.year}." in text
    counted = re.findall(r'<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"', page)
    assert counted == [("unmeasured", "0", "20"), ("unmeasured", "21", "9"), ("people", "20.1", "0.8")]


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


def test_owner_creates_a_project_with_the_address_of_its_site_or_for_every_site(dashboard: Dashboard) -> None:
    owner, new = dashboard.visitor("owner"), "https://new.example"
    for id, address, origin in (
        ("new-site", new, new),
        ("a-page", "HTTPS://New.example/about", new),
        ("a-host", "new.example", new),
        ("open", " ", "*"),
        ("star", "*", "*"),
    ):
        response = post(owner, "/projects", id=id, origin=address)
        assert response.headers["location"] == f"/projects/{id}/setup"
        assert projects.find(dashboard.engine, id).origins == (origin,)


def test_invalid_project_is_explained_beside_its_field(dashboard: Dashboard) -> None:
    before, owner = projects.list_all(dashboard.engine), dashboard.visitor("owner")
    for id, origin, message in (
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
    ):
        response = post(owner, "/projects", id=id, origin=origin)
        assert response.status_code == 422
        page = Html(response.text)
        assert message in page.text
        entered = {a["name"]: a["value"] for tag, a in page.tags if tag == "input" and "name" in a}
        assert (entered["id"], entered["origin"]) == (id, origin)
        assert [a["name"] for tag, a in page.tags if a.get("aria-invalid")] == ["origin" if id == "fine" else "id"]
    assert projects.list_all(dashboard.engine) == before


def test_viewer_has_no_form(dashboard: Dashboard) -> None:
    assert "New project" not in dashboard.visitor("viewer").get("/projects").text
