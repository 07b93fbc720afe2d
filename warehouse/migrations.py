"""Schema versions: numbered steps that bring a store of an older release to the newest version.

Each store records one version. Stores of Readership 0.1.0, which recorded none, have version 1. A new store is created
at the newest version. An older store takes the steps above its version in order; a newer store is refused unchanged.
Each room that owns a store has a list of steps: `warehouse.control.schema_steps`, `warehouse.hotlog.schema_steps`,
`warehouse.lake.table_schema`.

To change a schema: change the definition that new stores are created from, and append a step to the store's list.
A released step never changes, so it must not use definitions that change with the code, such as a script CREATE.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from warehouse.database.statements import Connection, has_table
from warehouse.errors import StoreTooNew

FIRST = 1
"""Version of a store without a recorded version, which Readership 0.1.0 wrote."""

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Step(Generic[Target]):
    """A change of a store's schema that brings the store to `version`."""

    version: int
    apply: Callable[[Target], None]


def newest(steps: Sequence[Step[Target]]) -> int:
    """Return the version after all steps."""
    assert [step.version for step in steps] == list(range(FIRST + 1, FIRST + 1 + len(steps))), (
        "steps are numbered without a gap"
    )
    return FIRST + len(steps)


def pending(store: str, version: int, steps: Sequence[Step[Target]]) -> Sequence[Step[Target]]:
    """Return the steps that a store at `version` still needs. `store` is its name in the error.

    Raises:
        StoreTooNew: a newer release wrote the store.
    """
    known = newest(steps)
    if version > known:
        raise StoreTooNew(
            f"{store} has schema version {version}, and this Readership knows versions up to {known}: "
            "install the release that wrote it, or a newer one; nothing was changed"
        )
    return steps[version - FIRST :]


def add_column(table: str, definition: str) -> Callable[[Connection], None]:
    """Return a step of a database that adds a column, such as `preset TEXT`.

    The step skips a table that does not exist yet: it is created at the newest version when it is first needed.
    """

    def apply(connection: Connection) -> None:
        if has_table(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {definition}")

    return apply
