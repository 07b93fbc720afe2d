"""Users of the dashboard. An owner may do everything, a viewer reads.

A user's epoch is a number that grows when the user's sessions and one-time links end: each of them is valid only in the
epoch in which it was created.
"""

import secrets
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal, get_args

import sqlalchemy as sa

from api.dashboard.accounts import passwords
from api.errors import InvalidName, InvalidRole, LastOwner, UserExists, UserNotFound
from warehouse.control import audit
from warehouse.control.audit import Failure
from warehouse.control.database import METADATA, transaction

NAME_CHARACTERS_MAX = 100
Role = Literal["owner", "viewer"]
ROLES: tuple[Role, ...] = get_args(Role)

USERS = sa.Table(
    "users",
    METADATA,
    sa.Column("id", sa.String(12), primary_key=True),
    sa.Column("name", sa.String(NAME_CHARACTERS_MAX), nullable=False),
    sa.Column("folded_name", sa.String(3 * NAME_CHARACTERS_MAX), nullable=False, unique=True),
    sa.Column("role", sa.String(10), nullable=False),
    sa.Column("password_hash", sa.String(200)),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("created_s", sa.BigInteger, nullable=False),
    sa.Column("last_seen_s", sa.BigInteger),
)


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


def create(engine: sa.Engine, name: str, role: Role, password: str | None, now_s: int) -> User:
    """Create a user. A user without a password signs in by a one-time link.

    Raises:
        InvalidPassword
        InvalidName, InvalidRole, UserExists: see `create_with_hash`.
    """
    return create_with_hash(engine, name, role, None if password is None else passwords.hashed(password), now_s)


def create_with_hash(
    engine: sa.Engine, name: str, role: Role, password_hash: str | None, now_s: int, by: str | None = None
) -> User:
    """Create a user with the hash of a password: see `create`. `by`: see `who` of `audit.Entry`.

    Raises:
        InvalidName, InvalidRole
        UserExists: another user has the name, in upper or lower case.
    """
    name = checked_name(name)
    if role not in ROLES:
        raise InvalidRole(f"a role is {' or '.join(ROLES)}, not {role!r}")
    user = User(secrets.token_hex(6), name, role, now_s, None, password_hash is not None)
    values = {
        "id": user.id,
        "name": name,
        "folded_name": folded(name),
        "role": role,
        "password_hash": password_hash,
        "epoch": 0,
        "created_s": now_s,
    }
    try:
        with engine.begin() as connection:
            connection.execute(USERS.insert().values(values))
            audit.record(connection, by, "added a user", detail=f"{name} ({role})")
    except sa.exc.IntegrityError:
        raise UserExists(f"there is a user {name!r} already") from None
    return user


def checked_name(text: str) -> str:
    """Return a name for a new user, without spaces at its ends.

    Raises:
        InvalidName
    """
    name = unicodedata.normalize("NFC", text.strip())
    if not (1 <= len(name) <= NAME_CHARACTERS_MAX and name.isprintable()):
        raise InvalidName(f"a user's name has 1 to {NAME_CHARACTERS_MAX} characters, all of them visible")
    return name


def folded(name: str) -> str:
    """Return a name in the form in which names are compared: without differences of case and composition."""
    return unicodedata.normalize("NFC", name.strip()).casefold()


def authenticate(engine: sa.Engine, name: str, password: str) -> User | None:
    """Return the user with this name and password, or None. An unknown name takes as long as a wrong password.

    The caller limits the attempts: see `attempts`.

    Raises:
        Overloaded: too many passwords are checked at this moment.
    """
    row = _row_by_name(engine, name)
    stored: str | None = None if row is None else row.password_hash
    if not passwords.matches(password, stored) or row is None or stored is None:
        return None
    if passwords.is_outdated(stored):
        _replace_hash(engine, row.id, stored, passwords.hashed(password))
    return from_row(row)


def find_by_name(engine: sa.Engine, name: str) -> User:
    """Return the user with a name, in upper or lower case.

    Raises:
        UserNotFound
    """
    row = _row_by_name(engine, name)
    if row is None:
        raise UserNotFound(f"there is no user {name!r}; `readership user list` shows the users")
    return from_row(row)


def list_all(engine: sa.Engine) -> list[User]:
    """Return all users, ordered by name."""
    with engine.connect() as connection:
        return [from_row(row) for row in connection.execute(USERS.select().order_by(USERS.c.folded_name))]


def count(engine: sa.Engine) -> int:
    """Return the number of users."""
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(USERS)).scalar_one()


def set_password(engine: sa.Engine, id: str, password: str | None, by: str | None = None) -> None:
    """Replace the password of a user, and end the user's sessions and one-time links.

    With None the user has no password until a one-time link is used. `by`: see `who` of `audit.Entry`.

    Raises:
        UserNotFound, InvalidPassword
    """
    set_hash(engine, id, None if password is None else passwords.hashed(password), by)


def set_hash(engine: sa.Engine, id: str, password_hash: str | None, by: str | None = None) -> None:
    """Replace the hash of a user's password, and end the user's sessions and one-time links. Raises UserNotFound."""
    with transaction(engine) as connection:
        name = _update(connection, id, {"password_hash": password_hash, "epoch": USERS.c.epoch + 1})
        audit.record(connection, by, "reset the password" if password_hash is None else "set the password", detail=name)


def end_epoch(engine: sa.Engine, id: str) -> None:
    """End the sessions and one-time links of a user. Raises UserNotFound."""
    with transaction(engine) as connection:
        _update(connection, id, {"epoch": USERS.c.epoch + 1})


def set_role(engine: sa.Engine, id: str, role: Role) -> None:
    """Change the role of a user. Sessions of the user have the new role from their next request.

    Raises:
        UserNotFound, InvalidRole
        LastOwner: the user is the only owner.
    """
    if role not in ROLES:
        raise InvalidRole(f"a role is {' or '.join(ROLES)}, not {role!r}")
    with transaction(engine) as connection:
        if role != "owner":
            _require_other_owner(connection, id)
        name = _update(connection, id, {"role": role})
        audit.record(connection, None, "changed a role", detail=f"{name} ({role})")


def remove(engine: sa.Engine, id: str) -> None:
    """Remove a user with the user's sessions and one-time links.

    Raises:
        UserNotFound
        LastOwner: the user is the only owner.
    """
    with transaction(engine) as connection:
        _require_other_owner(connection, id)
        name = connection.execute(USERS.delete().where(USERS.c.id == id).returning(USERS.c.name)).scalar_one_or_none()
        audit.record(connection, None, "removed a user", detail=_required(name, id))


def record_failure(engine: sa.Engine, name: str, failure: Failure) -> None:
    """Record a wrong password in the audit log, with the name only if a user has it: others may be passwords, too."""
    row = _row_by_name(engine, name)
    with transaction(engine) as connection:
        audit.record(connection, None if row is None else row.name, failure)


def from_row(row: sa.Row[Any]) -> User:
    """Return the user in a row of USERS, or of a join with it."""
    return User(row.id, row.name, row.role, row.created_s, row.last_seen_s, row.password_hash is not None)


def locked_epoch(connection: sa.Connection, id: str) -> int:
    """Return the epoch of a user, and lock the user's row until the transaction ends. Raises UserNotFound."""
    query = sa.select(USERS.c.epoch).where(USERS.c.id == id).with_for_update()
    epoch: int | None = connection.execute(query).scalar_one_or_none()
    if epoch is None:
        raise _not_found(id)
    return epoch


def _row_by_name(engine: sa.Engine, name: str) -> sa.Row[Any] | None:
    """Return the row of a user, or None. A name that no user can have is not sent to the database."""
    try:
        key = folded(checked_name(name))
    except InvalidName:
        return None
    with engine.connect() as connection:
        return connection.execute(USERS.select().where(USERS.c.folded_name == key)).one_or_none()


def _require_other_owner(connection: sa.Connection, id: str) -> None:
    """Raise LastOwner if the user is the only owner. Lock the owners until the transaction ends."""
    query = sa.select(USERS.c.id).where(USERS.c.role == "owner").order_by(USERS.c.id).with_for_update()
    if connection.execute(query).scalars().all() == [id]:
        raise LastOwner("this user is the only owner: add another owner first, with readership user add --role owner")


def _replace_hash(engine: sa.Engine, id: str, old: str, new: str) -> None:
    """Replace a hash, unless the password was changed in the meantime."""
    unchanged = (USERS.c.id == id) & (USERS.c.password_hash == old)
    with engine.begin() as connection:
        connection.execute(USERS.update().where(unchanged).values(password_hash=new))


def _update(connection: sa.Connection, id: str, values: dict[str, Any]) -> str:
    """Change a user, and return the user's name. Raises UserNotFound."""
    change = USERS.update().where(USERS.c.id == id).values(values).returning(USERS.c.name)
    return _required(connection.execute(change).scalar_one_or_none(), id)


def _required(name: str | None, id: str) -> str:
    if name is None:
        raise _not_found(id)
    return name


def _not_found(id: str) -> UserNotFound:
    return UserNotFound(f"there is no user with the id {id!r}")
