"""Projects have unique ids, and accept beacons from origins in the form that browsers send."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores import postgresql as postgresql_server
from tests.stores.between import after_statement
from warehouse.control import database, projects
from warehouse.control.projects import Project
from warehouse.database.pool import Pool
from warehouse.errors import InvalidProject, ProjectExists, ProjectGone, ProjectNotFound
from warehouse.folder import sqlite_url

NOW_S = 1_790_000_000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Pool]:
    opened = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    yield opened
    opened.close()


def test_find_returns_the_project_that_was_created(engine: Pool) -> None:
    created = projects.create(engine, "site", ("https://example.com", "http://localhost:3000"), NOW_S)
    assert created == Project("site", ("https://example.com", "http://localhost:3000"), NOW_S)
    assert projects.find(engine, "site") == created


def test_projects_are_listed_by_id(engine: Pool) -> None:
    for id in ("b", "a-2", "a", "1"):
        projects.create(engine, id, (), NOW_S)
    assert [project.id for project in projects.list_all(engine)] == ["1", "a", "a-2", "b"]


def test_only_slugs_are_accepted_as_an_id(engine: Pool) -> None:
    for id in ("a", "0", "site-2", "a--", "a" * 63):
        assert projects.create(engine, id, (), NOW_S).id == id
    for id in ("", "-a", "A", "a_b", "a.b", "a b", "a/b", "\xe9", "a\n", "a" * 64, "../a", "a'--", "\u0661"):
        with pytest.raises(InvalidProject):
            projects.create(engine, id, (), NOW_S)
    assert len(projects.list_all(engine)) == 5


def test_second_project_with_the_same_id_is_refused(engine: Pool) -> None:
    first = projects.create(engine, "site", ("https://one.example",), NOW_S)
    with pytest.raises(ProjectExists, match="^project 'site' exists already$"):
        projects.create(engine, "site", ("https://two.example",), NOW_S)
    assert projects.find(engine, "site") == first


def test_id_with_a_nul_character_is_unknown_in_each_database(database_url: str) -> None:
    engine = database.connect(database_url)
    with pytest.raises(ProjectNotFound):
        projects.find(engine, "a\0b")
    engine.close()


def test_unknown_project_is_an_error_of_each_function(engine: Pool) -> None:
    projects.create(engine, "site", (), NOW_S)
    with pytest.raises(ProjectNotFound, match="'other'"):
        projects.find(engine, "other")
    with pytest.raises(ProjectNotFound):
        projects.set_origins(engine, "other", ())
    with pytest.raises(ProjectNotFound):
        projects.begin_deletion(engine, "other")
    assert [project.id for project in projects.list_all(engine)] == ["site"]


def test_project_that_is_being_deleted_is_not_found_and_its_id_stays_in_use(engine: Pool) -> None:
    projects.create(engine, "site", ("*",), NOW_S)
    projects.begin_deletion(engine, "site")
    projects.begin_deletion(engine, "site")
    with pytest.raises(ProjectNotFound):
        projects.find(engine, "site")
    with pytest.raises(ProjectExists, match="^the deletion of project 'site' is not complete: delete it again"):
        projects.create(engine, "site", ("*",), NOW_S)
    assert projects.list_all(engine) == []


def test_id_of_a_deleted_project_can_be_used_again(engine: Pool) -> None:
    projects.create(engine, "site", ("*",), NOW_S)
    projects.delete(engine, "site")
    with pytest.raises(ProjectNotFound):
        projects.find(engine, "site")
    assert projects.create(engine, "site", (), NOW_S + 1).origins == ()


def test_second_deletion_of_a_project_leaves_the_next_project_with_its_id(engine: Pool) -> None:
    projects.create(engine, "site", (), NOW_S)
    internal_id = projects.begin_deletion(engine, "site")
    projects.delete(engine, "site", internal_id)
    projects.create(engine, "site", (), NOW_S + 1)
    projects.delete(engine, "site", internal_id)
    assert projects.find(engine, "site").created_s == NOW_S + 1


def test_deletion_that_begins_after_the_project_was_deleted_leaves_the_next_project_with_its_id(
    database_url: str,
) -> None:
    engine = database.connect(database_url)
    first = projects.create(engine, "site", (), NOW_S).internal_id
    assert projects.begin_deletion(engine, "site", first) == projects.internal_id_of(engine, "site") == first
    projects.require_same(engine, "site", first)
    projects.delete(engine, "site", first)
    with pytest.raises(ProjectGone):
        projects.require_same(engine, "site", first)
    second = projects.create(engine, "site", (), NOW_S + 1)
    with pytest.raises(ProjectGone, match="another process has deleted project 'site'"):
        projects.begin_deletion(engine, "site", first)
    with pytest.raises(ProjectGone):
        projects.require_same(engine, "site", first)
    assert projects.find(engine, "site") == second
    engine.close()


def test_deletion_of_a_missing_project_finds_none_that_is_created_meanwhile(postgresql: str) -> None:
    engine = database.connect(postgresql_server.new_database(postgresql))
    with (
        after_statement(engine, "UPDATE projects", lambda: projects.create(engine, "site", (), NOW_S)),
        pytest.raises(ProjectNotFound),
    ):
        projects.begin_deletion(engine, "site")
    assert projects.find(engine, "site").created_s == NOW_S
    engine.close()


def test_one_malformed_origin_leaves_all_origins_as_they_were(engine: Pool) -> None:
    projects.create(engine, "site", ("https://one.example",), NOW_S)
    projects.set_origins(engine, "site", ("https://two.example", "https://three.example"))
    assert projects.find(engine, "site").origins == ("https://two.example", "https://three.example")
    with pytest.raises(InvalidProject):
        projects.set_origins(engine, "site", ("https://four.example", "four"))
    assert projects.find(engine, "site").origins == ("https://two.example", "https://three.example")


def test_origin_is_stored_as_browsers_send_it(engine: Pool) -> None:
    for number, (sent, stored) in enumerate(
        [
            ("https://example.com", "https://example.com"),
            ("HTTPS://Example.COM/", "https://example.com"),
            ("https://example.com:443", "https://example.com"),
            ("http://example.com:80", "http://example.com"),
            ("http://example.com:443", "http://example.com:443"),
            ("https://example.com:8443", "https://example.com:8443"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("http://[::1]:8000", "http://[::1]:8000"),
            ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
            ("*", "*"),
        ]
    ):
        project = projects.create(engine, f"site-{number}", (sent,), NOW_S)
        assert project.origins == (stored,)
        assert project.allows(stored)


def test_text_that_no_browser_sends_is_refused_as_an_origin(engine: Pool) -> None:
    for origin in (
        "",
        "example.com",
        "//example.com",
        "https://",
        "https:///path",
        "https://example.com/path",
        "https://example.com?a=b",
        "https://example.com/#top",
        "https://user@example.com",
        "https://user:secret@example.com",
        "https://exa mple.com",
        "https://example.com:port",
        "https://example.com:99999",
        "https://[::1",
        "ftp://example.com",
        "javascript:alert(1)",
        "null",
        "https://*.example.com",
        "https://b\xfccher.example",
    ):
        with pytest.raises(InvalidProject):
            projects.create(engine, "site", (origin,), NOW_S)


def test_star_allows_every_origin_and_a_list_only_its_own() -> None:
    named = Project("site", ("https://example.com", "http://localhost:3000"), NOW_S)
    assert named.allows("https://example.com")
    assert named.allows("http://localhost:3000")
    for origin in ("http://example.com", "https://example.com:8443", "https://www.example.com", "null", "", "*"):
        assert not named.allows(origin)
    assert Project("site", ("*",), NOW_S).allows("https://anywhere.example")
    assert Project("site", ("*",), NOW_S).allows("null")
    assert not Project("site", (), NOW_S).allows("https://example.com")
