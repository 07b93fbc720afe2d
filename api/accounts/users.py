"""Users of the dashboard. An owner may do everything, a viewer reads.

A user's epoch is a number that grows when the user's sessions and one-time links end: each of them is valid only in the
epoch in which it was created.
"""

import secrets
import unicodedata
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from api.accounts import passwords
from api.errors import AccountError, InvalidName, UserNotFound
from warehouse.control import audit
from warehouse.control.audit import Failure
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection, Values

NAME_CHARACTERS_MAX = 100
Role = Literal["owner", "viewer"]
ROLES: tuple[Role, ...] = get_args(Role)

STATEMENTS = statements(__file__)


@dataclass(frozen=True, slots=True)
class User:
    """A user without the password's hash. Times are in seconds since 1970; `last_seen_s` is precise to an hour."""

    id: str
    name: str
    role: Role
    created_s: int
    last_seen_s: int | None
    has_password: bool = True
    """False for an invited user who has not chosen a password, and for the user of the demo."""


def create(control: Pool, name: str, role: Role, password_hash: str | None, now_s: int, by: str | None = None) -> User:
    """Create a user. One without a password signs in by a one-time link. `by`: see `who` of `audit.Entry`.

    Raises:
        InvalidName
        AccountError: another user has the name, in upper or lower case.
    """
    name = checked_name(name)
    user = User(secrets.token_hex(6), name, role, now_s, None, password_hash is not None)
    values = asdict(user) | {"folded_name": folded(name), "password_hash": password_hash}
    with control.transaction() as connection:
        if STATEMENTS.run(connection, "ADD", values).rowcount == 0:
            raise AccountError(f"there is a user {name!r} already")
        audit.record(connection, by, "added a user", detail=f"{name} ({role})")
    return user


def checked_name(text: str) -> str:
    """Return a name for a new user, without spaces at its ends. Raises InvalidName."""
    name = unicodedata.normalize("NFC", text.strip())
    if not (1 <= len(name) <= NAME_CHARACTERS_MAX and name.isprintable()):
        raise InvalidName(f"a user's name has 1 to {NAME_CHARACTERS_MAX} characters, all of them visible")
    return name


def folded(name: str) -> str:
    """Return a name in the form in which names are compared: without differences of case and composition."""
    return unicodedata.normalize("NFC", name.strip()).casefold()


def authenticate(control: Pool, name: str, password: str) -> User | None:
    """Return the user with this name and password, or None. An unknown name takes as long as a wrong password.

    The caller limits the attempts: see `attempts`.

    Raises:
        Overloaded: too many passwords are checked at this moment.
    """
    user, stored = _user_and_hash(control, name)
    if not passwords.matches(password, stored) or user is None or stored is None:
        return None
    if passwords.is_outdated(stored):
        values = {"id": user.id, "old": stored, "new": passwords.hashed(password)}
        with control.transaction() as connection:  # unless the password was changed in the meantime
            STATEMENTS.run(connection, "REPLACE_HASH", values)
    return user


def find_by_name(control: Pool, name: str) -> User:
    """Return the user with a name, in upper or lower case. Raises UserNotFound."""
    user, _ = _user_and_hash(control, name)
    if user is None:
        raise UserNotFound(f"there is no user {name!r}; `readership user list` shows the users")
    return user


def list_all(control: Pool) -> list[User]:
    """Return all users, ordered by name."""
    with control.connect() as connection:
        return [from_row(*row) for row in STATEMENTS.run(connection, "ALL").fetchall()]


def count(control: Pool) -> int:
    with control.connect() as connection:
        return int(STATEMENTS.run(connection, "COUNT").fetchone()[0])


def set_password(control: Pool, id: str, password_hash: str | None, by: str | None = None) -> None:
    """Replace the hash of a user's password, and end the user's sessions and one-time links. Raises UserNotFound.

    With None the user has no password until a one-time link is used. `by`: see `who` of `audit.Entry`.
    """
    with control.transaction() as connection:
        name = _update(connection, "SET_HASH", {"id": id, "password_hash": password_hash})
        audit.record(connection, by, "reset the password" if password_hash is None else "set the password", detail=name)


def end_epoch(control: Pool, id: str) -> None:
    """End the sessions and one-time links of a user. Raises UserNotFound."""
    with control.transaction() as connection:
        _update(connection, "END_EPOCH", {"id": id})


def set_role(control: Pool, id: str, role: Role) -> None:
    """Change the role of a user. Sessions of the user have the new role from their next request.

    Raises:
        UserNotFound
        AccountError: the user is the only owner.
    """
    with control.transaction() as connection:
        if role != "owner":
            _require_other_owner(connection, id)
        name = _update(connection, "SET_ROLE", {"id": id, "role": role})
        audit.record(connection, None, "changed a role", detail=f"{name} ({role})")


def remove(control: Pool, id: str) -> None:
    """Remove a user with the user's sessions and one-time links.

    Raises:
        UserNotFound
        AccountError: the user is the only owner.
    """
    with control.transaction() as connection:
        _require_other_owner(connection, id)
        name = _update(connection, "DELETE", {"id": id})
        audit.record(connection, None, "removed a user", detail=name)


def record_failure(control: Pool, name: str, failure: Failure) -> None:
    """Record a wrong password in the audit log, with the name only if a user has it: others may be passwords, too."""
    user, _ = _user_and_hash(control, name)
    with control.transaction() as connection:
        audit.record(connection, None if user is None else user.name, failure)


def from_row(id: str, name: str, role: Role, *rest: Any) -> User:
    """Return the user in a row of the table, which has 0 or 1 for a boolean in SQLite."""
    created_s, last_seen_s, has_password = rest
    return User(id, name, role, created_s, last_seen_s, bool(has_password))


def locked_epoch(connection: Connection, id: str) -> int:
    """Return the epoch of a user, and lock the user's row until the transaction ends. Raises UserNotFound."""
    row = STATEMENTS.run(connection, "LOCK_EPOCH", {"id": id}).fetchone()
    if row is None:
        raise _not_found(id)
    return int(row[0])


def seen(connection: Connection, id: str, now_s: int) -> str:
    """Store when a user was seen, and return the user's name. Raises UserNotFound."""
    return _update(connection, "SET_LAST_SEEN", {"id": id, "now_s": now_s})


def _user_and_hash(control: Pool, name: str) -> tuple[User | None, str | None]:
    """Return a user with the hash of the password. A name that no user can have is not sent to the database."""
    try:
        key = folded(checked_name(name))
    except InvalidName:
        return None, None
    with control.connect() as connection:
        row = STATEMENTS.run(connection, "BY_NAME", {"folded_name": key}).fetchone()
    return (None, None) if row is None else (from_row(*row[:-1]), row[-1])


def _require_other_owner(connection: Connection, id: str) -> None:
    """Raise AccountError if the user is the only owner. Lock the owners until the transaction ends."""
    if STATEMENTS.run(connection, "LOCK_OWNERS").fetchall() == [(id,)]:
        advice = "add another owner first, with readership user add --role owner"
        raise AccountError(f"this user is the only owner: {advice}")


def _update(connection: Connection, statement: str, values: Values) -> str:
    """Change or delete a user, and return the user's name. Raises UserNotFound."""
    rows = STATEMENTS.run(connection, statement, values).fetchall()
    if not rows:
        raise _not_found(values["id"])
    return str(rows[0][0])


def _not_found(id: object) -> UserNotFound:
    return UserNotFound(f"there is no user with the id {id!r}")
