"""The overview by a share link: its numbers, its links, and a link that was revoked."""

import pytest
from starlette.testclient import TestClient

from api.accounts import share_links
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.overview.overview_page import page_of
from tests.api.dashboard.site import Dashboard
from tests.processes.running import PROJECT


def test_shared_overview_has_the_numbers_and_no_other_page(read_site: Dashboard, reader: TestClient) -> None:
    token = share_links.create(read_site.engine, PROJECT, "press", 0)[1]
    stranger = read_site.visitor(None)
    response = stranger.get(f"/shared/{token}")
    page, own = Html(response.text), page_of(reader)

    assert response.headers["referrer-policy"] == "no-referrer"
    assert "noindex" in response.headers["x-robots-tag"]
    for heading in ("Numbers of this chart", "Top pages", "AI operators", "Referrers", "Devices", "Browsers"):
        assert page.rows(heading) == own.rows(heading)
        assert page.rows(heading)
    assert [link for link in page.links() if not link.startswith((f"/shared/{token}", "#"))] == ["/docs"]
    for link in {link for link in page.links() if link.startswith("/shared/")}:
        linked = stranger.get(link)
        assert (linked.status_code, linked.headers["referrer-policy"]) == (200, "no-referrer"), link
    assert stranger.get(f"/shared/{token}/live").status_code == 200
    assert stranger.get(f"/projects/{PROJECT}").status_code == 303


@pytest.mark.parametrize("part", ["", "/live", "/export.csv", "/export.parquet"])
def test_revoked_share_link_is_a_page_that_explains(read_site: Dashboard, part: str) -> None:
    link, token = share_links.create(read_site.engine, PROJECT, "press", 0)
    share_links.revoke(read_site.engine, link.id, 1)
    for known in (token, "unknown"):
        response = read_site.visitor(None).get(f"/shared/{known}{part}")
        assert response.status_code == 404
        assert "revoked" in response.text
