"""Stored robots.txt texts, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from functools import partial

import pytest

from api.dashboard.robots import texts
from api.dashboard.robots.texts import RobotsText
from tests.stores.between import at_once
from tests.stores.postgresql import new_database
from warehouse.control import database, projects
from warehouse.database.pool import Pool
from warehouse.errors import ProjectNotFound


@pytest.fixture
def engine(database_url: str) -> Iterator[Pool]:
    engine = database.connect(database_url)
    for project in ("site", "other"):
        projects.create(engine, project, (), 1)
    yield engine
    engine.close()


def test_texts_of_a_project_are_in_the_order_of_their_times(engine: Pool) -> None:
    assert texts.versions(engine, "site") == []
    texts.save(engine, "site", "User-agent: *\nDisallow: /", 20)
    texts.save(engine, "site", "User-agent: *\nAllow: /ü", 10)
    texts.save(engine, "other", "User-agent: *", 15)
    expected = [RobotsText("User-agent: *\nAllow: /ü", 10), RobotsText("User-agent: *\nDisallow: /", 20)]
    assert texts.versions(engine, "site") == expected


def test_removed_text_is_not_found_and_may_be_removed_again(engine: Pool) -> None:
    for since_s in (10, 20):
        texts.save(engine, "site", f"User-agent: {since_s}", since_s)
    for _ in range(2):
        texts.remove(engine, "site", 10)
    assert texts.versions(engine, "site") == [RobotsText("User-agent: 20", 20)]


def test_texts_are_deleted_with_their_project(engine: Pool) -> None:
    texts.save(engine, "site", "User-agent: *", 10)
    projects.delete(engine, "site")
    projects.create(engine, "site", (), 20)
    assert texts.versions(engine, "site") == []


def test_unknown_project_has_no_text(engine: Pool) -> None:
    with pytest.raises(ProjectNotFound):
        texts.save(engine, "nowhere", "User-agent: *", 10)


def test_last_text_of_a_project_is_one_of_those_that_are_saved_at_once(postgresql: str) -> None:
    engine = database.connect(new_database(postgresql))
    projects.create(engine, "site", (), 1)
    for since_s in range(1, texts.VERSIONS_MAX):
        assert texts.save(engine, "site", f"User-agent: {since_s}", since_s)
    at_once(
        engine,
        "INSERT INTO robots_versions",
        *(partial(texts.save, engine, "site", f"User-agent: {n}", n) for n in (100, 200)),
    )
    assert len(texts.versions(engine, "site")) == texts.VERSIONS_MAX
    assert texts.save(engine, "site", "User-agent: 1\nAllow: /", 1)
    assert not texts.save(engine, "site", "User-agent: *", 300)
    engine.close()


def test_texts_of_one_time_that_are_saved_at_once_are_one_text(postgresql: str) -> None:
    engine = database.connect(new_database(postgresql))
    projects.create(engine, "site", (), 1)
    first, second = (partial(texts.save, engine, "site", f"User-agent: *\nAllow: /{n}", 10) for n in (1, 2))
    at_once(engine, "INSERT INTO robots_versions", first, second)
    assert texts.versions(engine, "site") == [RobotsText("User-agent: *\nAllow: /2", 10)]
    engine.close()
