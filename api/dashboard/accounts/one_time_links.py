"""Links that work once, within 30 minutes: they create the first owner, set a password or sign in.

The database has only the SHA-256 of a link's token. A new link replaces the earlier links for the same user, and a
user's links end with the user's epoch. Links for the first owner end when a user exists.
"""

from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from api.dashboard.accounts import tokens, users
from api.dashboard.accounts.users import USERS, User
from warehouse.control.database import METADATA, transaction

TTL_S = 30 * 60
"""Time from the creation of a link to its end, in seconds."""

Purpose = Literal["first_owner", "password", "sign_in"]
"""`first_owner` creates a user, `password` sets the password of a user, and `sign_in` starts a session without one."""

ONE_TIME_LINKS = sa.Table(
    "one_time_links",
    METADATA,
    sa.Column("sha256", sa.String(tokens.HASH_CHARACTERS), primary_key=True),
    sa.Column("purpose", sa.String(20), nullable=False),
    sa.Column("user_id", sa.ForeignKey(USERS.c.id, ondelete="CASCADE"), index=True),
    sa.Column("epoch", sa.Integer),
    sa.Column("expires_s", sa.BigInteger, nullable=False),
)
_NO_USER = ~sa.exists(sa.select(USERS.c.id))


@dataclass(frozen=True, slots=True)
class OneTimeLink:
    """A valid link. `user` is None for the purpose `first_owner`."""

    purpose: Purpose
    user: User | None


def create_for_first_owner(engine: sa.Engine, now_s: int) -> str | None:
    """Create a link for the first owner and return its token, which is not stored; return None if a user exists."""
    if users.count(engine):  # without the write lock of a transaction, which a full disk may refuse
        return None
    with transaction(engine) as connection:
        return _insert(connection, "first_owner", None, None, now_s)


def create(engine: sa.Engine, purpose: Literal["password", "sign_in"], user_id: str, now_s: int) -> str:
    """Create a link for a user and return its token, which is not stored.

    Raises:
        UserNotFound: the user was removed.
    """
    with transaction(engine) as connection:
        return _insert(connection, purpose, user_id, users.locked_epoch(connection, user_id), now_s)


def find(engine: sa.Engine, token: str, now_s: int) -> OneTimeLink | None:
    """Return a valid link without using it, or None."""
    with engine.connect() as connection:
        row = connection.execute(_valid(token, now_s)).one_or_none()
    return None if row is None else _link(row)


def redeem(engine: sa.Engine, token: str, now_s: int) -> OneTimeLink | None:
    """Use a link and return it, or return None if it is unknown, used or expired. Of several calls one succeeds."""
    with transaction(engine) as connection:
        row = connection.execute(_valid(token, now_s)).one_or_none()
        used = connection.execute(ONE_TIME_LINKS.delete().where(ONE_TIME_LINKS.c.sha256 == tokens.sha256(token)))
    return None if row is None or used.rowcount == 0 else _link(row)


def _insert(connection: sa.Connection, purpose: Purpose, user_id: str | None, epoch: int | None, now_s: int) -> str:
    """Insert a link and return its token. Delete expired links, and the earlier links for the same user."""
    link, token = ONE_TIME_LINKS.c, tokens.new()
    connection.execute(ONE_TIME_LINKS.delete().where((link.user_id == user_id) | (link.expires_s <= now_s)))
    values = {
        "sha256": tokens.sha256(token),
        "purpose": purpose,
        "user_id": user_id,
        "epoch": epoch,
        "expires_s": now_s + TTL_S,
    }
    connection.execute(ONE_TIME_LINKS.insert().values(values))
    return token


def _valid(token: str, now_s: int) -> sa.Select[Any]:
    link = ONE_TIME_LINKS.c
    is_in_epoch = sa.case((link.purpose == "first_owner", _NO_USER), else_=link.epoch == USERS.c.epoch)
    joined = ONE_TIME_LINKS.outerjoin(USERS)
    query = sa.select(link.purpose, link.user_id, USERS).select_from(joined)
    return query.where(link.sha256 == tokens.sha256(token), link.expires_s > now_s, is_in_epoch)


def _link(row: sa.Row[Any]) -> OneTimeLink:
    return OneTimeLink(row.purpose, None if row.user_id is None else users.from_row(row))
