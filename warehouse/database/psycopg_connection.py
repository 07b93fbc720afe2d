"""Connections of psycopg to a PostgreSQL server: their settings, and the lock by which they are counted.

psycopg is an optional dependency and takes 0.1 s to import, so each function imports it.
"""

import select
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

CONNECT_TIMEOUT_S = 3
"""Time for which a new connection waits for the server, in seconds."""
LOST_AFTER_S = 10
"""Time without a reply after which a connection counts as lost, in seconds."""
IDLE_IN_TRANSACTION_S = 2
"""Time after which the server ends the transaction of a client that sends nothing, in seconds.

A paused process would otherwise keep its locks. The time is below the lock timeout of posts, which therefore wait for
a paused process and are then stored.
"""
CLIENT_KEY = 0x6E6F6465
"""Key of the advisory lock that every connection to a hot log shares, by which they are counted: `node` in ASCII."""
COUNT_OTHERS = f"""
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND classid = 0 AND objid = {CLIENT_KEY} AND mode = 'ShareLock' AND pid <> pg_backend_pid()
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""Statement that counts the other connections to the database."""
SYNCHRONOUS_COMMIT = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
"""Statement of each new connection: the server's operator may have turned synchronous commits off, and a 202 depends on
them."""


def open_connection(url: str, schema: str | None, lock_timeout_s: float | None) -> "psycopg.Connection[Any]":
    """Open a connection in autocommit mode to the database at `url`, a URL of libpq, whose own parameters prevail.

    A connection to a `schema`, that of a hot log, is counted, and has limits of time for locks and transactions.

    Raises:
        psycopg.Error: the server does not answer or refuses the connection.
    """
    import psycopg  # noqa: PLC0415  # see the module's docstring

    parameters: dict[str, Any] = {
        "fallback_application_name": "readership",
        "connect_timeout": CONNECT_TIMEOUT_S,
        "keepalives_idle": LOST_AFTER_S // 2,
        "keepalives_interval": 1,
        "keepalives_count": LOST_AFTER_S // 2,
        "tcp_user_timeout": LOST_AFTER_S * 1000,
        **psycopg.conninfo.conninfo_to_dict(url),
    }
    if schema is not None and lock_timeout_s is not None:
        parameters["options"] = (
            f"-c search_path={schema} -c lock_timeout={int(lock_timeout_s * 1000)}"
            f" -c idle_in_transaction_session_timeout={IDLE_IN_TRANSACTION_S * 1000}"
        )
    connection = psycopg.connect("", autocommit=True, **parameters)
    connection.execute(SYNCHRONOUS_COMMIT)
    if schema is not None:
        connection.execute(f"SELECT pg_advisory_lock_shared({CLIENT_KEY})")
    return connection


def is_lost(connection: "psycopg.Connection[Any]") -> bool:
    """Return whether the server has closed an idle connection.

    The call sends a statement only if the server has sent something: a notice, or the end of the connection.
    """
    import psycopg  # noqa: PLC0415  # see the module's docstring

    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return False
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        return True
    return False
