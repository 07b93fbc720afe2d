"""The pages of a share link: their numbers and links, the pages that a link does not open, and a revoked link."""

import re
from typing import get_args

import pytest
from starlette.testclient import TestClient

from api.accounts import share_links
from api.accounts.share_links import Pages
from api.dashboard.pages.settings.share import PAGE_NAMES
from api.dashboard.pages_table import PAGES
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.overview.overview_page import page_of
from tests.api.dashboard.site import SAME_SITE, Dashboard
from tests.processes.running import PROJECT
from tests.rounds import seeded, some

BASE = f"/projects/{PROJECT}"


@pytest.mark.long
def test_shared_overview_has_the_numbers_and_no_other_page(read_site: Dashboard, reader: TestClient) -> None:
    token = share_links.create(read_site.engine, PROJECT, "press", 0)[1]
    stranger = read_site.visitor(None)
    response = stranger.get(f"/shared/{token}")
    page, own = Html(response.text), page_of(reader)
    assert response.headers["referrer-policy"] == "no-referrer"
    assert "noindex" in response.headers["x-robots-tag"]
    for heading in ("Numbers of this chart", "Top pages", "AI operators", "Referrers", "Browsers"):
        assert page.rows(heading) == own.rows(heading)
        assert page.rows(heading)
    assert [link for link in page.links() if not link.startswith((f"/shared/{token}", "#"))] == ["/docs"]
    links = {link for link in page.links() if link.startswith("/shared/")}
    for link in some(seeded(1), sorted(links), 12):
        linked = stranger.get(link)
        assert (linked.status_code, linked.headers["referrer-policy"]) == (200, "no-referrer"), link
    assert stranger.get(f"/shared/{token}/live").status_code == 200
    assert stranger.get(f"/projects/{PROJECT}").status_code == 303


@pytest.fixture(scope="module")
def stranger(read_site: Dashboard) -> TestClient:
    return read_site.visitor(None)


@pytest.mark.long
def test_link_to_all_pages_has_their_numbers_and_no_way_out(
    read_site: Dashboard, reader: TestClient, stranger: TestClient
) -> None:
    token = share_links.create(read_site.engine, PROJECT, "agency", 0, pages="all")[1]
    for path in ("", "/ai", "/ai/agents/GPTBot", "/pages", "/page?path=/docs/1", "/errors", "/ai.csv"):
        shared, own = (client.get(f"{base}{path}") for client, base in ((stranger, f"/shared/{token}"), (reader, BASE)))
        assert (shared.status_code, own.status_code) == (200, 200)
        assert shared.headers["referrer-policy"] == "no-referrer"
        page, own_tables = Html(shared.text), Html(own.text).tables
        for tables in (page.tables, own_tables):
            tables.pop("Sources", None)  # has links to the settings
        assert page.tables == own_tables
        if path.endswith(".csv"):
            assert shared.text == own.text
        ways = [link for link in page.links() if not link.startswith((f"/shared/{token}", "#", "https://"))]
        assert set(ways) <= {"/docs"}
        assert not set(re.findall(r'action="([^"]*)"', shared.text)) - {f"/shared/{token}{path.partition('?')[0]}"}
        assert not re.search("Settings|Set up|API keys|Sign out|Why|Cost", page.text)
        tabs = re.findall(r">([^<]+)</a>", shared.text.partition('aria-label="Project"')[2].partition("</nav>")[0])
        assert path.endswith(".csv") or ", ".join(tabs[:-1]) + " and " + tabs[-1] == PAGE_NAMES["all"]


@pytest.mark.long
def test_link_opens_no_page_without_counts_and_changes_nothing(read_site: Dashboard, stranger: TestClient) -> None:
    overview, everything = (
        share_links.create(read_site.engine, PROJECT, pages, 0, pages=pages)[1] for pages in get_args(Pages)
    )
    of_project = {page.path.removeprefix("/projects/{project}") for page in PAGES if "{project}" in page.path}
    opened: dict[str, set[str]] = {overview: set(), everything: set()}
    for token, paths in opened.items():
        for path in of_project:
            address = f"/shared/{token}{path.replace('{agent:path}', 'GPTBot')}"
            assert stranger.post(address, headers=SAME_SITE).status_code in (404, 405)
            response = stranger.get(address, params={"path": "/docs/1", "project": "other"})
            if response.status_code == 200:
                paths.add(path)
                assert "other" not in re.sub("[Oo]ther ", "", Html(response.text).text)
    parts = {"", "/live", "/export.csv", "/export.parquet"}
    assert opened[overview] == parts
    pages = {"/ai", "/ai.csv", "/ai/agents/{agent:path}", "/pages", "/pages.csv", "/page", "/errors", "/errors.csv"}
    assert opened[everything] == parts | pages


def test_revoked_share_link_is_a_page_that_explains(read_site: Dashboard, stranger: TestClient) -> None:
    link, token = share_links.create(read_site.engine, PROJECT, "press", 0)
    share_links.revoke(read_site.engine, link.id, 1)
    for part in ("", "/live", "/export.csv", "/export.parquet"):
        for known in (token, "unknown"):
            response = stranger.get(f"/shared/{known}{part}")
            assert response.status_code == 404
            assert "revoked" in response.text
