"""The hot log's table of dirty days: days whose counts in `daily_views` may differ from `hits`.

Two Delta tables cannot commit in one transaction. A task that is about to change rows of `hits` therefore marks their
days dirty first, and clears them after its commit to `daily_views`. The next load recounts the days that a killed
process left dirty (`warehouse.maintenance.recount`). Until then, readers count those days from `hits`.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

TABLE = "CREATE TABLE IF NOT EXISTS recounts (id INTEGER PRIMARY KEY AUTOINCREMENT, date TEXT NOT NULL UNIQUE)"


@dataclass(frozen=True, slots=True)
class DirtyDays:
    """The dirty days (YYYY-MM-DD), and the id of the newest mark; 0 before the first.

    Ids are never reused: two equal values mean that no day was marked or cleared between the two reads.
    """

    days: frozenset[str]
    last_mark: int


def mark_dirty(hot: sqlite3.Connection, days: Sequence[str]) -> None:
    """Mark days (YYYY-MM-DD) dirty, durably. A day that is dirty already stays as it is."""
    hot.execute("INSERT OR IGNORE INTO recounts (date) SELECT value FROM json_each(?)", (json.dumps(days),))


def clear_dirty(hot: sqlite3.Connection, days: Sequence[str]) -> None:
    """Clear days on which `daily_views` equals `hits` again."""
    hot.execute("DELETE FROM recounts WHERE date IN (SELECT value FROM json_each(?))", (json.dumps(days),))


def list_dirty(hot: sqlite3.Connection) -> list[str]:
    """Return the dirty days in ascending order."""
    return [str(date) for (date,) in hot.execute("SELECT date FROM recounts ORDER BY date")]


def read_dirty(hot: sqlite3.Connection) -> DirtyDays:
    """Return the dirty days and the newest mark, both read in one statement and thus in one transaction."""
    days, last_mark = hot.execute(
        "SELECT (SELECT json_group_array(date) FROM recounts),"
        " (SELECT seq FROM sqlite_sequence WHERE name = 'recounts')"
    ).fetchone()
    return DirtyDays(frozenset(json.loads(days)), last_mark or 0)
