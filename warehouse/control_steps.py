"""The steps that bring the control database to its newest schema version.

SQLAlchemy is only imported where a step runs: an import of a log compares the version, and loads no SQLAlchemy.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from warehouse import migrations
from warehouse.migrations import Step

if TYPE_CHECKING:
    import sqlalchemy as sa

STORE = "the control database"

Steps = Sequence[Step["sa.Connection"]]
STEPS: Steps = ()


def pending(version: int | None, steps: Steps = STEPS) -> Steps:
    """Return the steps that a control database needs; `version` is None if it records none.

    Raises:
        StoreTooNew: a newer release wrote it.
    """
    return migrations.pending(STORE, version or migrations.FIRST, steps)


def add_column(table: str, definition: str) -> Callable[["sa.Connection"], None]:
    """Return a step that adds a column, such as `preset TEXT`.

    A table that is not there yet is left out: it is created at the newest version when it is first needed.
    """

    def apply(connection: "sa.Connection") -> None:
        import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

        if sa.inspect(connection).has_table(table):
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {definition}")

    return apply
