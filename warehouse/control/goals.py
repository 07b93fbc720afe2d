"""Goals of projects: definitions that reports apply to stored hits and events, also to those before the definition."""

import secrets
import time
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from warehouse.control import audit, projects
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.errors import GoalNotFound, InvalidGoal

STATEMENTS = statements(__file__)
Kind = Literal["path", "event"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GOALS_MAX = 100
"""Maximum number of goals of a project."""
NAME_CHARACTERS_MAX = 120
VALUE_CHARACTERS_MAX = {"path": 2_048, "event": 120}


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal. `value` is the name of an event, or a path as the filter `path` of reports, such as `/order/*`."""

    id: str
    name: str
    kind: Kind
    value: str
    created_s: int


def of_project(control: Pool, project: str) -> list[Goal]:
    """Return the goals of a project by name."""
    with control.connect() as connection:
        rows = STATEMENTS.run(connection, "OF_PROJECT", {"project": project}).fetchall()
    return sorted((Goal(*row) for row in rows), key=lambda each: each.name)


def add(control: Pool, project: str, name: str, kind: Kind, value: str, by: str | None = None) -> Goal:
    """Add a goal. A `value` of the kind `path` is normalised by the caller. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound
        InvalidGoal: a text is empty, too long or not printable, the name is taken, or the project has GOALS_MAX goals.
    """
    for field, text, most in (("name", name, NAME_CHARACTERS_MAX), ("value", value, VALUE_CHARACTERS_MAX[kind])):
        if not (0 < len(text) <= most and text.isprintable() and text == text.strip()):
            raise InvalidGoal(field, f"must have 1 to {most:,} printable characters, without spaces at the ends")
    goal = Goal(secrets.token_hex(6), name, kind, value, int(time.time()))
    with control.transaction() as connection:
        projects.lock(connection, project)
        names = [row[1] for row in STATEMENTS.run(connection, "OF_PROJECT", {"project": project}).fetchall()]
        if name in names:
            raise InvalidGoal("name", f"is taken: another goal is named {name!r}")
        if len(names) >= GOALS_MAX:
            raise InvalidGoal("name", f"cannot be added: a project has at most {GOALS_MAX} goals; remove one first")
        STATEMENTS.run(connection, "ADD", {**asdict(goal), "project": project})
        audit.record(connection, by, "added a goal", project, f"{name}: {kind} {value}")
    return goal


def remove(control: Pool, project: str, id: str, by: str | None = None) -> None:
    """Remove a goal of a project. Its hits and events stay. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound, GoalNotFound
    """
    with control.transaction() as connection:
        projects.lock(connection, project)
        named = {"project": project, "id": id}
        removed = None if "\0" in id else STATEMENTS.run(connection, "REMOVE", named).fetchone()
        if removed is None:
            raise GoalNotFound(f"the project {project!r} has no goal {id!r}")
        audit.record(connection, by, "removed a goal", project, removed[0])
