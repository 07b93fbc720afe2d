"""API keys: made, listed, revoked and looked up. Only a key's SHA-256 is stored.

A key is `rdr_admin_`, 32 random base62 characters and 6 of their CRC-32, so that a typing error is told from a revoked
key without a look-up.
"""

import hashlib
import logging
import secrets
import string
import threading
import time
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from api.errors import KeyNotFound
from warehouse.control import projects
from warehouse.control.database import METADATA
from warehouse.database_errors import Cause, cause_of, reason_of

PREFIX = "rdr_admin_"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
SECRET_CHARACTERS = 32
CHECKSUM_CHARACTERS = 6
BELIEVED_S = 2.0
"""A key found good is believed for so long without a look-up: a revoked one stops within it, in every worker."""
BELIEVED_MAX = 10_000
USED_EVERY_S = 60
"""How fresh a key's last-used time is kept."""

LOG = logging.getLogger("readership.keys")

Scope = Literal["read", "ingest", "write"]
SCOPES: tuple[Scope, ...] = ("read", "ingest", "write")
"""`read` reads, `ingest` posts hits, and `write` does everything."""

KEYS = sa.Table(
    "keys",
    METADATA,
    sa.Column("id", sa.String(12), primary_key=True),
    sa.Column("project_id", sa.ForeignKey(projects.PROJECTS.c.id, ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("scope", sa.String(10), nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False, unique=True),
    sa.Column("created_s", sa.BigInteger, nullable=False),
    sa.Column("expires_s", sa.BigInteger),
    sa.Column("revoked_s", sa.BigInteger),
    sa.Column("last_used_s", sa.BigInteger),
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret. Times are seconds since 1970."""

    id: str
    project: str
    name: str
    scope: Scope
    created_s: int
    expires_s: int | None
    revoked_s: int | None
    last_used_s: int | None

    def allows(self, needed: Scope) -> bool:
        """Return whether the key may do what needs this scope."""
        return self.scope in (needed, "write")

    def is_good(self, now_s: float) -> bool:
        return self.revoked_s is None and (self.expires_s is None or now_s < self.expires_s)


@dataclass(frozen=True, slots=True)
class LiveKey(Key):
    """A key that a request bears, with its project's internal id (see `warehouse.hotlog.refusals`)."""

    internal_id: str


def create(
    engine: sa.Engine, project: str, name: str, scope: Scope, expires_s: int | None, now_s: int
) -> tuple[Key, str]:
    """A new key and its token, which is shown this once. Raises ProjectNotFound."""
    projects.find(engine, project)
    secret = "".join(secrets.choice(BASE62) for _ in range(SECRET_CHARACTERS))
    token = PREFIX + secret + _checksum(secret)
    key = Key(secrets.token_hex(6), project, name, scope, now_s, expires_s, None, None)
    values = {
        "id": key.id,
        "project_id": project,
        "name": name,
        "scope": scope,
        "sha256": _sha256(token),
        "created_s": now_s,
        "expires_s": expires_s,
    }
    with engine.begin() as connection:
        connection.execute(KEYS.insert().values(values))
    return key, token


def every(engine: sa.Engine, project: str | None = None) -> list[Key]:
    """All keys, or those of one project, oldest first."""
    query = KEYS.select().order_by(KEYS.c.created_s, KEYS.c.id)
    if project is not None:
        query = query.where(KEYS.c.project_id == project)
    with engine.connect() as connection:
        return [_key(row) for row in connection.execute(query)]


def named(engine: sa.Engine, which: str) -> Key:
    """The one key with this id, name or token. Raises KeyNotFound."""
    same = sa.or_(KEYS.c.id == which, KEYS.c.name == which, KEYS.c.sha256 == _sha256(which))
    with engine.connect() as connection:
        found = [_key(row) for row in connection.execute(KEYS.select().where(same))]
    if len(found) != 1:
        shown = "that" if which.startswith(PREFIX) else repr(which[:40])
        raise KeyNotFound(f"{len(found)} keys go by {shown}; `readership key list` shows their ids")
    return found[0]


def revoke(engine: sa.Engine, id: str, now_s: int) -> None:
    """End a key for good; it stops within BELIEVED_S in every running worker. Raises KeyNotFound."""
    with engine.begin() as connection:
        values = {"revoked_s": sa.func.coalesce(KEYS.c.revoked_s, now_s)}
        changed = connection.execute(KEYS.update().where(KEYS.c.id == id).values(values))
    if changed.rowcount == 0:
        raise KeyNotFound(f"there is no key with the id {id!r}; `readership key list` shows them")


def revoke_all(engine: sa.Engine, project: str, now_s: int) -> None:
    """End every key of a project."""
    with engine.begin() as connection:
        values = {"revoked_s": sa.func.coalesce(KEYS.c.revoked_s, now_s)}
        connection.execute(KEYS.update().where(KEYS.c.project_id == project).values(values))


def is_well_formed(token: str) -> bool:
    """Whether the text can be a key at all: prefix, length and checksum."""
    secret, checksum = token[len(PREFIX) : -CHECKSUM_CHARACTERS], token[-CHECKSUM_CHARACTERS:]
    return token.startswith(PREFIX) and len(secret) == SECRET_CHARACTERS and _checksum(secret) == checksum


class Keyring:
    """The keys a process has found good lately."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._believed: dict[str, tuple[LiveKey, float]] = {}

    def believed(self, token: str) -> LiveKey | None:
        """The key, if it was looked up within BELIEVED_S; costs no I/O."""
        key, until_s = self._believed.get(token, (None, 0.0))
        return key if key is not None and time.monotonic() < until_s and key.is_good(time.time()) else None

    def look_up(self, token: str) -> LiveKey:
        """The good key of a token, from the database; its last-used time is kept there.

        Raises:
            KeyNotFound: unknown, revoked or expired.
        """
        now_s = int(time.time())
        with self._engine.connect() as connection:
            query = sa.select(KEYS, projects.PROJECTS.c.internal_id).join(projects.PROJECTS)
            row = connection.execute(query.where(KEYS.c.sha256 == _sha256(token))).one_or_none()
        if row is None or not (key := _live(row)).is_good(now_s):
            raise KeyNotFound("the API key is unknown, revoked or expired")
        if key.last_used_s is None or now_s - key.last_used_s >= USED_EVERY_S:
            self._note_use(key, now_s)
        with self._lock:
            if len(self._believed) >= BELIEVED_MAX:
                self._believed.clear()
            self._believed[token] = (key, time.monotonic() + BELIEVED_S)
        return key

    def _note_use(self, key: Key, now_s: int) -> None:
        """Store the time of use. If the database cannot be written the old time stays: readers are still answered."""
        try:
            with self._engine.begin() as connection:
                connection.execute(KEYS.update().where(KEYS.c.id == key.id).values(last_used_s=now_s))
        except sa.exc.DBAPIError as error:
            if cause_of(error) is Cause.PROGRAM:
                raise
            LOG.warning("the last use of key %s is not stored: %s", key.id, reason_of(error))


def _key(row: sa.Row[Any]) -> Key:
    return Key(*_values(row))


def _live(row: sa.Row[Any]) -> LiveKey:
    return LiveKey(*_values(row), row.internal_id)


def _values(row: sa.Row[Any]) -> tuple[str, str, str, Scope, int, int | None, int | None, int | None]:
    return (
        row.id,
        row.project_id,
        row.name,
        row.scope,
        row.created_s,
        row.expires_s,
        row.revoked_s,
        row.last_used_s,
    )


def _checksum(secret: str) -> str:
    number, digits = zlib.crc32(secret.encode()), ""
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(BASE62))
        digits = BASE62[digit] + digits
    return digits


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
