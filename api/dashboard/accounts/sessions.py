"""Sessions of signed-in browsers. The database has only the SHA-256 of a session's token.

A session ends 30 days after its last use, at sign-out, and with the epoch of its user: when the user signs out
everywhere, when the password is set, and when the user is removed.
"""

import logging

import sqlalchemy as sa

from api.dashboard.accounts import tokens, users
from api.dashboard.accounts.users import USERS, User
from warehouse.control import audit
from warehouse.control.audit import Action
from warehouse.control.database import METADATA, transaction
from warehouse.database_errors import Cause, cause_of, reason_of

TTL_S = 30 * 86_400
"""Time from the last use of a session to its end, in seconds."""
RENEW_EVERY_S = 3_600
"""Minimum time between two writes of a session's last use, in seconds."""

LOG = logging.getLogger("readership.sessions")

SESSIONS = sa.Table(
    "sessions",
    METADATA,
    sa.Column("sha256", sa.String(tokens.HASH_CHARACTERS), primary_key=True),
    sa.Column("user_id", sa.ForeignKey(USERS.c.id, ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("renewed_s", sa.BigInteger, nullable=False),
)


def start(engine: sa.Engine, user_id: str, now_s: int, action: Action | None = "signed in") -> str:
    """Start a session and return its token, which is not stored. Delete expired sessions of all users.

    `action` is its name in the audit log; without one, it has no entry.

    Raises:
        UserNotFound: the user was removed.
    """
    token = tokens.new()
    with transaction(engine) as connection:
        epoch = users.locked_epoch(connection, user_id)
        connection.execute(SESSIONS.delete().where(SESSIONS.c.renewed_s <= now_s - TTL_S))
        values = {"sha256": tokens.sha256(token), "user_id": user_id, "epoch": epoch, "renewed_s": now_s}
        connection.execute(SESSIONS.insert().values(values))
        connection.execute(USERS.update().where(USERS.c.id == user_id).values(last_seen_s=now_s))
        if action is not None:
            name = connection.execute(sa.select(USERS.c.name).where(USERS.c.id == user_id)).scalar_one()
            audit.record(connection, name, action)
    return token


def find(engine: sa.Engine, token: str, now_s: int) -> User | None:
    """Return the user of a valid session, or None. Renew the session if its last renewal is RENEW_EVERY_S ago."""
    query = sa.select(USERS, SESSIONS.c.renewed_s).join(SESSIONS).where(SESSIONS.c.epoch == USERS.c.epoch)
    with engine.connect() as connection:
        row = connection.execute(query.where(SESSIONS.c.sha256 == tokens.sha256(token))).one_or_none()
    if row is None or row.renewed_s <= now_s - TTL_S:
        return None
    if now_s - row.renewed_s >= RENEW_EVERY_S:
        _renew(engine, token, row.id, now_s)
    return users.from_row(row)


def end(engine: sa.Engine, token: str) -> None:
    """End a session. An unknown token is not an error."""
    with engine.begin() as connection:
        connection.execute(SESSIONS.delete().where(SESSIONS.c.sha256 == tokens.sha256(token)))


def end_all(engine: sa.Engine, user_id: str) -> None:
    """End all sessions of a user, and the user's one-time links. Raises UserNotFound."""
    users.end_epoch(engine, user_id)
    with engine.begin() as connection:
        connection.execute(SESSIONS.delete().where(SESSIONS.c.user_id == user_id))


def _renew(engine: sa.Engine, token: str, user_id: str, now_s: int) -> None:
    """Store the time of use. If the database is read-only, full or locked, the old time remains, and the page is
    shown."""
    try:
        with engine.begin() as connection:
            this = SESSIONS.c.sha256 == tokens.sha256(token)
            connection.execute(SESSIONS.update().where(this).values(renewed_s=now_s))
            connection.execute(USERS.update().where(USERS.c.id == user_id).values(last_seen_s=now_s))
    except sa.exc.DBAPIError as error:
        if cause_of(error) is Cause.PROGRAM:
            raise
        LOG.warning("cannot store the last use of a session of user %s: %s", user_id, reason_of(error))
