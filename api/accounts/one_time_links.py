"""Links that work once, within 30 minutes: they create the first owner, set a password or sign in.

The database has only the SHA-256 of a link's token. A new link replaces the earlier links for the same user, and a
user's links end with the user's epoch. Links for the first owner end when a user exists.
"""

from dataclasses import dataclass
from typing import Literal

from api.accounts import tokens, users
from api.accounts.users import User
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

TTL_S = 30 * 60
"""Time from the creation of a link to its end, in seconds."""

Purpose = Literal["first_owner", "password", "sign_in"]
"""`first_owner` creates a user, `password` sets the password of a user, and `sign_in` starts a session without one."""

STATEMENTS = statements(__file__)


@dataclass(frozen=True, slots=True)
class OneTimeLink:
    """A valid link. `user` is None for the purpose `first_owner`."""

    purpose: Purpose
    user: User | None


def create_for_first_owner(control: Pool, now_s: int) -> str | None:
    """Create a link for the first owner and return its token, which is not stored; return None if a user exists."""
    if users.count(control):  # without the write lock of a transaction, which a full disk may refuse
        return None
    with control.transaction() as connection:
        return _insert(connection, "first_owner", None, None, now_s)


def create(control: Pool, purpose: Literal["password", "sign_in"], user_id: str, now_s: int) -> str:
    """Create a link for a user and return its token, which is not stored. Raises UserNotFound."""
    with control.transaction() as connection:
        return _insert(connection, purpose, user_id, users.locked_epoch(connection, user_id), now_s)


def find(control: Pool, token: str, now_s: int) -> OneTimeLink | None:
    """Return a valid link without using it, or None."""
    with control.connect() as connection:
        return _valid(connection, token, now_s)


def redeem(control: Pool, token: str, now_s: int) -> OneTimeLink | None:
    """Use a link and return it, or return None if it is unknown, used or expired. Of several calls one succeeds."""
    with control.transaction() as connection:
        link = _valid(connection, token, now_s)
        used = STATEMENTS.run(connection, "DELETE", {"sha256": tokens.sha256(token)})
    return None if used.rowcount == 0 else link


def _insert(connection: Connection, purpose: Purpose, user_id: str | None, epoch: int | None, now_s: int) -> str:
    """Insert a link and return its token. Delete expired links, and the earlier links for the same user."""
    token = tokens.new()
    STATEMENTS.run(connection, "DELETE_EARLIER", {"user": user_id, "now_s": now_s})
    values = {"purpose": purpose, "user": user_id, "epoch": epoch, "expires_s": now_s + TTL_S}
    STATEMENTS.run(connection, "ADD", {"sha256": tokens.sha256(token), **values})
    return token


def _valid(connection: Connection, token: str, now_s: int) -> OneTimeLink | None:
    row = STATEMENTS.run(connection, "VALID", {"sha256": tokens.sha256(token), "now_s": now_s}).fetchone()
    if row is None:
        return None
    purpose, id, *columns = row
    return OneTimeLink(purpose, None if id is None else users.from_row(id, *columns))
