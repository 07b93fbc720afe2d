"""Advisory lock of a PostgreSQL server, which one connection at a time has.

The server ends the connection of a client that sends nothing for LOCK_IDLE_S seconds, and thereby frees the lock of a
paused process. While the owner works without the server, such as on a commit to the lake, a thread sends statements.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from warehouse.database.postgresql import PostgresqlConnection, ServerError

LOCK_IDLE_S = 60.0
"""Time in seconds after which the server closes the connection of a client that has an advisory lock and is silent."""
SENT_PER_TIMEOUT = 4
"""Number of statements that the owner's thread sends in LOCK_IDLE_S seconds."""
_TRY_LOCK = "SELECT pg_try_advisory_lock(%s), current_setting('idle_session_timeout')"
_SET_TIMEOUT = "SELECT set_config('idle_session_timeout', %s, false)"
_UNLOCK = "SELECT set_config('idle_session_timeout', %s, false), pg_advisory_unlock(%s)"


@contextmanager
def advisory_lock(connection: PostgresqlConnection, key: int, idle_s: float = LOCK_IDLE_S) -> Iterator[bool]:
    """Try to take the lock `key` for the block, and yield whether it was free. `idle_s` replaces LOCK_IDLE_S.

    The block with the lock pins the connection: a statement on it fails if the connection, and thus the lock, was lost.
    """
    is_free, timeout = connection.execute(_TRY_LOCK, (key,)).fetchone()
    if not is_free:
        yield False
        return
    try:
        with connection.pinned():
            connection.execute(_SET_TIMEOUT, (f"{int(idle_s * 1000)}ms",))
            with _sending(connection, idle_s / SENT_PER_TIMEOUT):
                yield True
    finally:
        try:
            connection.execute(_UNLOCK, (timeout, key))
        except ServerError:
            connection.close()  # which frees the lock


@contextmanager
def _sending(connection: PostgresqlConnection, every_s: float) -> Iterator[None]:
    """Send a statement every `every_s` seconds in which the connection is idle. A paused process sends none."""
    ending = threading.Event()

    def send() -> None:
        while not ending.wait(every_s):
            connection.send_if_idle()

    thread = threading.Thread(target=send, name="advisory lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
