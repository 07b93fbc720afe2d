"""The steps that bring the control database to its newest schema version.

SQLAlchemy is only imported where a step runs: an import of a log compares the version, and loads no SQLAlchemy.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from warehouse import migrations
from warehouse.migrations import Step

if TYPE_CHECKING:
    import sqlalchemy as sa

STORE = "the control database"

Steps = Sequence[Step["sa.Connection"]]


def add_column(table: str, definition: str) -> Callable[["sa.Connection"], None]:
    """Return a step that adds a column, such as `preset TEXT`.

    A table that is not there yet is left out: it is created at the newest version when it is first needed.
    """

    def apply(connection: "sa.Connection") -> None:
        import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

        if sa.inspect(connection).has_table(table):
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {definition}")

    return apply


def _add_internal_ids(connection: "sa.Connection") -> None:
    """Give each project an id that no other project ever has, also after a deletion."""
    import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

    add_column("projects", "internal_id VARCHAR(32) NOT NULL DEFAULT ''")(connection)
    if sa.inspect(connection).has_table("projects"):
        for id in connection.execute(sa.text("SELECT id FROM projects")).scalars().all():
            values = {"id": id, "internal_id": uuid.uuid4().hex}
            connection.execute(sa.text("UPDATE projects SET internal_id = :internal_id WHERE id = :id"), values)


def widen_text(table: str, column: str, characters: int) -> Callable[["sa.Connection"], None]:
    """Return a step that lets a text column have more characters. SQLite has no limit to change."""

    def apply(connection: "sa.Connection") -> None:
        import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

        if connection.dialect.name == "postgresql" and sa.inspect(connection).has_table(table):
            connection.exec_driver_sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR({characters})")

    return apply


STEPS: Steps = (Step(2, _add_internal_ids), Step(3, widen_text("keys", "scope", 10)))
"""2: a project's internal id. 3: the key scope `ingest` is longer than `write`."""


def pending(version: int | None, steps: Steps = STEPS) -> Steps:
    """Return the steps that a control database needs; `version` is None if it records none.

    Raises:
        StoreTooNew: a newer release wrote it.
    """
    return migrations.pending(STORE, version or migrations.FIRST, steps)
