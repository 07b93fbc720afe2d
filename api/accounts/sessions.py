"""Sessions of signed-in browsers. The database has only the SHA-256 of a session's token.

A session ends 30 days after its last use, at sign-out, and with the epoch of its user: when the user signs out
everywhere, when the password is set, and when the user is removed.
"""

from api.accounts import tokens, users
from api.accounts.users import User
from warehouse.control import audit
from warehouse.control.audit import Action
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database_errors import best_effort

TTL_S = 30 * 86_400
"""Time from the last use of a session to its end, in seconds."""
RENEW_EVERY_S = 3_600
"""Minimum time between two writes of a session's last use, in seconds."""

STATEMENTS = statements(__file__)


def start(control: Pool, user_id: str, now_s: int, action: Action | None = "signed in") -> str:
    """Start a session and return its token, which is not stored. Delete expired sessions of all users.

    `action` is its name in the audit log; without one, it has no entry.

    Raises:
        UserNotFound: the user was removed.
    """
    token = tokens.new()
    with control.transaction() as connection:
        epoch = users.locked_epoch(connection, user_id)
        STATEMENTS.run(connection, "DELETE_EXPIRED", {"until_s": now_s - TTL_S})
        values = {"sha256": tokens.sha256(token), "user": user_id, "epoch": epoch, "now_s": now_s}
        STATEMENTS.run(connection, "ADD", values)
        name = users.seen(connection, user_id, now_s)
        if action is not None:
            audit.record(connection, name, action)
    return token


def find(control: Pool, token: str, now_s: int) -> User | None:
    """Return the user of a valid session, or None. Renew the session if its last renewal is RENEW_EVERY_S ago."""
    with control.connect() as connection:
        row = STATEMENTS.run(connection, "USER", {"sha256": tokens.sha256(token)}).fetchone()
    if row is None or row[0] <= now_s - TTL_S:
        return None
    renewed_s, *columns = row
    user = users.from_row(*columns)
    if now_s - renewed_s >= RENEW_EVERY_S:
        _renew(control, token, user.id, now_s)
    return user


def end(control: Pool, token: str) -> None:
    """End a session. An unknown token is not an error."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE", {"sha256": tokens.sha256(token)})


def end_all(control: Pool, user_id: str) -> None:
    """End all sessions of a user, and the user's one-time links. Raises UserNotFound."""
    users.end_epoch(control, user_id)
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE_OF_USER", {"user": user_id})


def _renew(control: Pool, token: str, user_id: str, now_s: int) -> None:
    """Store the time of use. If the database is read-only, full or locked, the old time remains, and the page is
    shown."""
    with best_effort(f"cannot store the last use of a session of user {user_id}"), control.transaction() as connection:
        STATEMENTS.run(connection, "RENEW", {"sha256": tokens.sha256(token), "now_s": now_s})
        users.seen(connection, user_id, now_s)
