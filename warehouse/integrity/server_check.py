"""Check of the PostgreSQL server of a hot log: its version and settings, and whether any node loads the hits in it."""

from collections.abc import Iterator
from contextlib import closing

from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.database_errors import status_of
from warehouse.hotlog import batches, wal
from warehouse.hotlog.connection import Server

VERSION_MIN = 14
"""Oldest version of PostgreSQL that frees the locks of paused clients (`idle_session_timeout`)."""
LATE_S = 300.0
"""Age of a waiting hit at which it should be in the lake, in seconds."""
SYNCED = "PostgreSQL syncs each commit to its disk"
LOADED = "a node loads the hits of all nodes"
_LOSSES = {
    "fsync": "a loss of power can lose acknowledged hits and damage the database",
    "full_page_writes": "a loss of power can damage the database",
    "synchronous_commit": "Readership turns it on for itself, and other programs can lose commits",
}
"""What a setting of the server means while it is off."""
_SETTINGS = "SELECT name FROM pg_settings WHERE name = ANY(%s) AND reset_val = 'off' ORDER BY name"


def broken(server: Server) -> str | None:
    """Return why the hot log cannot be read and written; None without a fault."""
    try:
        with closing(batches.connect(server)) as connection:
            wal.try_write(connection)
            version = int(connection.execute("SHOW server_version_num").fetchone()[0]) // 10_000
    except ServerError as error:
        return status_of(error)
    return None if version >= VERSION_MIN else f"the server is PostgreSQL {version}, and {VERSION_MIN} is needed"


def warnings(connection: PostgresqlConnection, late_s: float, now_s: float) -> Iterator[tuple[str, str | None]]:
    """Yield each invariant that the server's operator ensures, with a warning; None if the invariant is true.

    `late_s` is the age of a waiting hit at which it should be in the lake, and `now_s` the time since 1970, in seconds.
    """
    off = [name for (name,) in connection.execute(_SETTINGS, (list(_LOSSES),))]
    yield SYNCED, "; ".join(f"{name} is off: {_LOSSES[name]}" for name in off) or None
    is_late = batches.backlog(connection).age_s(now_s) > late_s
    late = f"hits wait for more than {late_s:g} s: no node runs, or the log of each has the error of its loads"
    yield LOADED, late if is_late else None
