"""Steps that bring the control database to its newest schema version.

Only a step that runs imports SQLAlchemy. A log import compares the version, and does not load SQLAlchemy for it.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from warehouse import migrations
from warehouse.migrations import Step

if TYPE_CHECKING:
    import sqlalchemy as sa

STORE = "the control database"
"""Name of the store in messages."""
RESTORE = "restore it from a backup; without one, move it out of the folder and run readership recover"
"""Advice for a damaged control database, in messages."""

Steps = Sequence[Step["sa.Connection"]]


def pending(version: int | None, steps: Steps | None = None) -> Steps:
    """Return the steps that a control database still needs. `version` is None if it records no version.

    Raises:
        StoreTooNew: a newer release wrote the database.
    """
    return migrations.pending(STORE, version or migrations.FIRST, STEPS if steps is None else steps)


def add_column(table: str, definition: str) -> Callable[["sa.Connection"], None]:
    """Return a step that adds a column, such as `preset TEXT`.

    The step skips a table that does not exist yet: it is created at the newest version when it is first needed.
    """

    def apply(connection: "sa.Connection") -> None:
        import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

        if sa.inspect(connection).has_table(table):
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {definition}")

    return apply


def _add_internal_ids(connection: "sa.Connection") -> None:
    """Give each project an internal id that is never reused, not even after the project's deletion."""
    import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

    add_column("projects", "internal_id VARCHAR(32) NOT NULL DEFAULT ''")(connection)
    if sa.inspect(connection).has_table("projects"):
        for id in connection.execute(sa.text("SELECT id FROM projects")).scalars().all():
            values = {"id": id, "internal_id": uuid.uuid4().hex}
            connection.execute(sa.text("UPDATE projects SET internal_id = :internal_id WHERE id = :id"), values)


def widen_text(table: str, column: str, characters: int) -> Callable[["sa.Connection"], None]:
    """Return a step that raises the maximum length of a text column. SQLite enforces no maximum."""

    def apply(connection: "sa.Connection") -> None:
        import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

        if connection.dialect.name == "postgresql" and sa.inspect(connection).has_table(table):
            connection.exec_driver_sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({characters})")

    return apply


def _add_coding_agents(connection: "sa.Connection") -> None:
    """Record in each agent job and each stored response the coding agent that its project is configured with."""
    import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

    if not sa.inspect(connection).has_table("jobs"):
        return
    connection.exec_driver_sql("ALTER TABLE jobs ADD COLUMN preset TEXT NOT NULL DEFAULT 'opencode'")
    connection.exec_driver_sql("ALTER TABLE jobs ADD COLUMN command JSON NOT NULL DEFAULT '[]'")
    jobs = sa.table("jobs", *map(sa.column, ("project_id", "preset")), sa.column("command", sa.JSON))
    answers = sa.table("job_answers", *map(sa.column, ("project_id", "operation", "key")), sa.column("answer", sa.JSON))
    chosen = connection.execute(
        sa.text("SELECT project_id, content FROM agent_configurations").columns(content=sa.JSON)
    )
    agents = {
        row.project_id: {name: row.content.get(name, value) for name, value in _FIRST_CODING_AGENT.items()}
        for row in chosen
    }
    for name, agent in agents.items():
        connection.execute(jobs.update().where(jobs.c.project_id == name).values(agent))
    for row in connection.execute(sa.select(answers)).all():
        same = (answers.c.project_id == row.project_id) & (answers.c.operation == row.operation)
        agent = agents.get(row.project_id, _FIRST_CODING_AGENT)
        connection.execute(
            answers.update().where(same, answers.c.key == row.key).values(answer={**row.answer, **agent})
        )


_FIRST_CODING_AGENT = {"preset": "opencode", "command": []}
"""Coding agent of a configuration of 0.1.0 that names no coding agent."""
STEPS: Steps = (
    Step(2, _add_internal_ids),
    Step(3, widen_text("keys", "scope", 10)),
    Step(4, _add_coding_agents),
    Step(5, add_column("keys", "start VARCHAR(20) NOT NULL DEFAULT ''")),
    Step(6, lambda connection: None),  # an older release, which would not apply the new source_policies, is refused
)
