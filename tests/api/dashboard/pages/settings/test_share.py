"""Share links: created by owners, shown once, revoked at once."""

import re

import pytest

from api.accounts import share_links
from api.dashboard.pages.settings import share
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import Dashboard, post
from tests.processes.running import PROJECT, new_key

PATH = f"/projects/{PROJECT}/share"


@pytest.mark.long
def test_link_is_shown_once_opens_the_overview_and_ends_when_revoked(dashboard: Dashboard) -> None:
    owner, stranger = dashboard.visitor("owner"), dashboard.visitor(None)
    created = post(owner, PATH, name="Press", pages="overview")
    assert created.status_code == 200
    address = re.search(r"http://testserver(/shared/[\w-]{40,})", created.text)
    assert address is not None
    assert stranger.get(address[1]).status_code == 200
    listed = owner.get(PATH)
    assert "Press" in {row[0] for row in Html(listed.text).rows("Links")}
    assert "/shared/" not in listed.text
    link = next(link for link in share_links.list_all(dashboard.engine, PROJECT) if link.name == "Press")
    revoked = post(owner, f"{PATH}/{link.id}/revoke")
    assert revoked.headers["location"] == PATH
    assert stranger.get(address[1]).status_code == 404
    assert "Press" not in owner.get(PATH).text


def test_invalid_name_and_unknown_pages_are_explained_beside_the_field(dashboard: Dashboard) -> None:
    before, owner = share_links.list_all(dashboard.engine, PROJECT), dashboard.visitor("owner")
    for name, pages, message in (
        (" ", "overview", "fill in"),
        ("x" * 101, "overview", "at most 100"),
        ("a\0b", "overview", "Use letters"),
        ("Odd", "keys", "Choose one of: overview, all."),
    ):
        response = post(owner, PATH, name=name, pages=pages)
        assert response.status_code == 422
        assert message in Html(response.text).text
    assert share_links.list_all(dashboard.engine, PROJECT) == before


@pytest.mark.long
def test_link_begins_with_the_page_from_which_it_was_created(dashboard: Dashboard) -> None:
    owner, stranger = dashboard.visitor("owner"), dashboard.visitor(None)
    shared = re.search(r'href="([^"]+)">Share this page', owner.get(f"/projects/{PROJECT}/ai?period=7d").text)
    assert shared is not None
    assert 'value="/ai?period=7d"' in owner.get(shared[1]).text
    created = post(owner, PATH, name="Readers", pages="all", first="/ai?period=7d").text
    address = re.search(r"http://testserver(/shared/[\w-]{40,}/ai\?period=7d)", created)
    assert address is not None
    assert "<h1>AI readers</h1>" in stranger.get(address[1]).text
    assert "Share this page" not in stranger.get(address[1]).text
    assert "Share this page" not in dashboard.visitor("viewer").get(f"/projects/{PROJECT}/ai").text
    for pages, first in (("overview", "/ai"), ("all", "/cost"), ("all", "/ai/robots"), ("all", "ai"), ("all", "/ai#a")):
        refused = post(owner, PATH, name="Other", pages=pages, first=first)
        assert (refused.status_code, "Use the path and query" in refused.text) == (422, True)


FIRST_PAGES_THAT_OPEN = (
    "", "?period=7d", "/ai", "/ai/agents/GPTBot", "/ai/agents/Claude%20Code?period=7d", "/pages?sort=ai", "/errors",
    "/page?path=/", "/page?path=%2Fguide", "/page?period=7d&path=%2Fguide&source=log",
)  # fmt: skip
FIRST_PAGES_OF_OTHERS = (
    "/page", "/page?", "/page?period=7d", "/page?path=", "/page?path=&period=7d", "/page?path=guide", "/page?xpath=/",
    "/page?path=/guide*", "/page?path=%2Fguide%2A&period=7d", "/ai/agents/", "/ai/agents/x/y", "/ai/agents/../../cost",
    "/ai/agents/..", "/ai/agents/.", "/ai/agents/%2e%2E/%2e%2e/cost", "/ai/agents/%2e.?a", "/ai/agents/..\\..\\cost",
)  # fmt: skip


@pytest.mark.long
def test_link_begins_only_with_a_page_that_opens(dashboard: Dashboard) -> None:
    link, token = share_links.create(dashboard.engine, PROJECT, "opens", 0, pages="all")
    stranger, pattern = dashboard.visitor(None), share.FIRST_PAGES["all"]
    statuses = {first: stranger.get(f"/shared/{token}{first}").status_code for first in FIRST_PAGES_THAT_OPEN}
    assert statuses == dict.fromkeys(FIRST_PAGES_THAT_OPEN, 200)
    assert [first for first in FIRST_PAGES_THAT_OPEN if not pattern.fullmatch(first)] == []
    assert [first for first in FIRST_PAGES_OF_OTHERS if pattern.fullmatch(first)] == []
    share_links.revoke(dashboard.engine, link.id, 0, "owner")


def test_page_without_a_path_cannot_be_shared(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    for query in ("", "?path=/guide*"):
        assert "Share this page" not in owner.get(f"/projects/{PROJECT}/page{query}").text
    assert "Share this page" in owner.get(f"/projects/{PROJECT}/page?path=/guide").text


def test_name_is_escaped(dashboard: Dashboard) -> None:
    attack = "<script>alert('x')</script>"
    owner = dashboard.visitor("owner")
    assert attack not in post(owner, PATH, name=attack, pages="overview").text
    assert attack in {row[0] for row in Html(owner.get(PATH).text).rows("Links")}
    assert attack not in owner.get(PATH).text


def test_link_of_another_project_cannot_be_revoked(dashboard: Dashboard) -> None:
    new_key(dashboard.data, "other")
    link, token = share_links.create(dashboard.engine, "other", "theirs", 0)
    assert post(dashboard.visitor("owner"), f"{PATH}/{link.id}/revoke").status_code == 404
    assert share_links.find(dashboard.engine, token) is not None


def test_viewer_sees_the_names_without_forms(dashboard: Dashboard) -> None:
    share_links.create(dashboard.engine, PROJECT, "for a viewer", 0)
    text = dashboard.visitor("viewer").get(PATH).text
    assert "for a viewer" in text
    assert "New link" not in text
    assert "/revoke" not in text


def test_form_that_is_posted_again_creates_no_second_link(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    assert post(owner, PATH, name="Twice", pages="overview").status_code == 200
    again = post(owner, PATH, name="Twice", pages="overview")
    assert again.status_code == 422
    assert "Another link has this name" in again.text
    links = [link for link in share_links.list_all(dashboard.engine, PROJECT) if link.name == "Twice"]
    assert len(links) == 1
    post(owner, f"{PATH}/{links[0].id}/revoke")
    assert post(owner, PATH, name="Twice", pages="overview").status_code == 200
