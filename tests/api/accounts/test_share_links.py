"""Share links: created, listed, looked up and revoked."""

import pytest

from api.accounts import share_links
from api.errors import ShareLinkNotFound
from tests.api.accounts.conftest import NOW_S
from warehouse.control import projects
from warehouse.database.pool import Pool
from warehouse.errors import ProjectNotFound


@pytest.fixture(autouse=True)
def _sites(engine: Pool) -> None:
    for project in ("site", "other"):
        projects.create(engine, project, (), NOW_S)


def test_link_is_found_by_its_token(engine: Pool) -> None:
    link, token = share_links.create(engine, "site", "for the board", NOW_S)
    assert (link.project, link.name, link.created_s, link.revoked_s) == ("site", "for the board", NOW_S, None)
    assert share_links.find(engine, token) == link
    for unknown in ("", token[:-1], link.id, "\udcff\x00"):
        assert share_links.find(engine, unknown) is None


def test_links_of_a_project_are_listed_oldest_first(engine: Pool) -> None:
    second, first = (share_links.create(engine, "site", "", at_s)[0] for at_s in (2, 1))
    share_links.create(engine, "other", "", 3)
    assert share_links.list_all(engine, "site") == [first, second]


def test_revoked_link_is_listed_and_not_found(engine: Pool) -> None:
    link, token = share_links.create(engine, "site", "", NOW_S)
    _, other = share_links.create(engine, "site", "", NOW_S)
    share_links.revoke(engine, link.id, NOW_S + 1)
    share_links.revoke(engine, link.id, NOW_S + 2)
    assert share_links.find(engine, token) is None
    assert share_links.find(engine, other) is not None
    assert [each.revoked_s for each in share_links.list_all(engine, "site") if each.id == link.id] == [NOW_S + 1]
    with pytest.raises(ShareLinkNotFound):
        share_links.revoke(engine, "nothing", NOW_S)


def test_link_ends_with_its_project(engine: Pool) -> None:
    _, token = share_links.create(engine, "site", "", NOW_S)
    projects.begin_deletion(engine, "site")
    assert share_links.find(engine, token) is None
    projects.delete(engine, "site")
    projects.create(engine, "site", (), NOW_S)
    assert share_links.find(engine, token) is None
    assert share_links.list_all(engine, "site") == []


def test_link_to_an_unknown_project_is_not_created(engine: Pool) -> None:
    with pytest.raises(ProjectNotFound):
        share_links.create(engine, "nowhere", "", NOW_S)
