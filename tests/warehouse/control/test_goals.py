"""Goals are stored with a unique name and within limits, and deleted with the project, on SQLite and PostgreSQL."""

from contextlib import closing
from functools import partial

import pytest

from tests.stores.between import at_once
from tests.stores.postgresql import new_database
from warehouse.control import audit, database, goals, projects
from warehouse.control.goals import GOALS_MAX, Kind
from warehouse.errors import GoalNotFound, InvalidGoal, ProjectNotFound


def test_goals_are_listed_by_name_audited_and_deleted_with_the_project(database_url: str) -> None:
    with closing(database.connect(database_url)) as engine:
        for id in ("site", "other"):
            projects.create(engine, id, (), 0)
        order = goals.add(engine, "site", "order", "path", "/order/*", "ada")
        signup = goals.add(engine, "site", "Sign up", "event", "Signup")
        elsewhere = goals.add(engine, "other", "order", "path", "/order")
        assert goals.of_project(engine, "site") == [signup, order]
        with pytest.raises(GoalNotFound, match="no goal"):
            goals.remove(engine, "site", elsewhere.id)
        goals.remove(engine, "site", order.id, "bob")
        assert goals.of_project(engine, "site") == [signup]
        assert [(each.who, each.action, each.detail) for each in audit.entries(engine, 0, 9) if each.who] == [
            ("bob", "removed a goal", "order"),
            ("ada", "added a goal", "order: path /order/*"),
        ]
        projects.delete(engine, "site")
        projects.create(engine, "site", (), 0)
        assert (goals.of_project(engine, "site"), goals.of_project(engine, "other")) == ([], [elsewhere])
        with pytest.raises(ProjectNotFound):
            goals.add(engine, "none", "order", "path", "/")


@pytest.mark.parametrize(
    ("name", "kind", "value", "message"),
    [
        ("", "path", "/", "name must have 1 to 120"),
        ("x" * 121, "path", "/", "name must have 1 to 120"),
        ("a\nb", "path", "/", "name must have 1 to 120"),
        ("a", "event", "x" * 121, "value must have 1 to 120"),
        ("a", "path", "/" + "x" * 2_048, "value must have 1 to 2,048"),
        ("taken", "event", "x", "another goal is named 'taken'"),
    ],
)
def test_limits_are_named(database_url: str, name: str, kind: Kind, value: str, message: str) -> None:
    with closing(database.connect(database_url)) as engine:
        projects.create(engine, "site", (), 0)
        goals.add(engine, "site", "taken", "path", "/" + "x" * 2_047)
        with pytest.raises(InvalidGoal, match=message):
            goals.add(engine, "site", name, kind, value)


def test_two_owners_who_add_the_last_goal_at_once_do_not_exceed_the_limit(postgresql: str) -> None:
    with closing(database.connect(new_database(postgresql))) as engine:
        projects.create(engine, "site", (), 0)
        for number in range(GOALS_MAX - 1):
            goals.add(engine, "site", f"{number}", "path", "/")
        first, second = (partial(goals.add, engine, "site", name, "path", "/") for name in ("a", "b"))
        with pytest.raises(InvalidGoal, match="at most 100 goals"):
            at_once(engine, "SELECT id, name", first, second)
        assert len(goals.of_project(engine, "site")) == GOALS_MAX
