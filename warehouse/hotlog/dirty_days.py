"""The hot log's table of dirty days: days whose counts in `daily_views` may differ from `hits`.

Two Delta tables cannot commit in one transaction. A task that is about to change rows of `hits` therefore marks their
days dirty first, and clears them after its commit to `daily_views`. The next load recounts the days that a killed
process left dirty (`warehouse.maintenance.recount`). Until then, readers count those days from `hits`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from warehouse.hotlog.connection import STATEMENTS, HotConnection
from warehouse.transaction import joined_transaction


@dataclass(frozen=True, slots=True)
class DirtyDays:
    """The dirty days (YYYY-MM-DD), and the id of the newest mark; 0 before the first.

    Ids are never reused: two equal values mean that no day was marked or cleared between the two reads.
    """

    days: frozenset[str]
    last_mark: int


def mark_dirty(hot: HotConnection, days: Sequence[str]) -> None:
    """Mark days (YYYY-MM-DD) dirty, durably. A day that is dirty already stays as it is."""
    with joined_transaction(hot):
        STATEMENTS.run_many(hot, "MARK_DIRTY", [{"day": day} for day in days])


def clear_dirty(hot: HotConnection, days: Sequence[str]) -> None:
    """Clear days on which `daily_views` equals `hits` again."""
    with joined_transaction(hot):
        STATEMENTS.run_many(hot, "CLEAR_DIRTY", [{"day": day} for day in days])


def list_dirty(hot: HotConnection) -> list[str]:
    """Return the dirty days in ascending order."""
    return [str(date) for (date,) in STATEMENTS.run(hot, "DIRTY")]


def read_dirty(hot: HotConnection) -> DirtyDays:
    """Return the dirty days and the newest mark, both read in one statement and thus in one transaction."""
    rows = STATEMENTS.run(hot, "DIRTY_AND_LAST_MARK").fetchall()
    return DirtyDays(frozenset(date for _, date in rows if date is not None), rows[0][0] if rows else 0)
