"""API keys: created, listed, revoked and looked up. The database has only the SHA-256 of a key.

A key is the prefix of its scope, 32 random base62 characters and their CRC-32 in 6 more. The checksum distinguishes a
typing error from a revoked key without a look-up. The first four random characters are stored too, for people to
recognise a key.
"""

import asyncio
import secrets
import string
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

from api.accounts import tokens
from api.cache import Cache
from api.errors import KeyExists, KeyNotFound
from warehouse.control import audit, projects
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database_errors import best_effort

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
SECRET_CHARACTERS = 32
CHECKSUM_CHARACTERS = 6
ID_BYTES = 6
START_CHARACTERS = 4
"""Number of random characters that are stored and shown, after the prefix."""
LAST_USE_EVERY_S = 60
"""Minimum time between two writes of a key's last-used time, in seconds."""

Scope = Literal["read", "ingest", "write"]
SCOPES: tuple[Scope, ...] = ("read", "ingest", "write")
"""`read` allows exports, `ingest` allows posts of hits, and `write` allows every operation."""
PREFIXES: dict[Scope, str] = {"read": "rdr_read_", "ingest": "rdr_ingest_", "write": "rdr_admin_"}
"""First characters of a key, by scope. Older keys begin with `rdr_admin_`, whatever their scope."""

STATEMENTS = statements(__file__)


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its token. Times are in seconds since 1970.

    `start` is the start of the token, such as `rdr_admin_4fK2`; empty for a key of an older release.
    """

    id: str
    project: str
    name: str
    scope: Scope
    created_s: int
    expires_s: int | None
    revoked_s: int | None
    last_used_s: int | None
    start: str

    def allows(self, needed: Scope) -> bool:
        """Return whether the key's scope includes the scope that an operation needs."""
        return self.scope in (needed, "write")

    def is_valid(self, now_s: float) -> bool:
        """Return whether the key is neither revoked nor expired."""
        return self.revoked_s is None and (self.expires_s is None or now_s < self.expires_s)


@dataclass(frozen=True, slots=True)
class BearerKey(Key):
    """The valid key of a request, with its project's internal id (see `warehouse.hotlog.refusals`)."""

    internal_id: str


def create(  # noqa: PLR0913, PLR0917  # the columns of a key
    control: Pool,
    project: str,
    name: str,
    scope: Scope,
    expires_s: int | None,
    now_s: int,
    id: str | None = None,
    by: str | None = None,
) -> tuple[Key, str]:
    """Create a key and return it with its token, which is not stored.

    `id` is a result of `new_id`. A caller that may repeat the call passes the same id again, which creates no second
    key. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound
        KeyExists: a key has the id.
    """
    projects.find(control, project)
    secret = "".join(secrets.choice(BASE62) for _ in range(SECRET_CHARACTERS))
    token = PREFIXES[scope] + secret + _checksum(secret)
    start = PREFIXES[scope] + secret[:START_CHARACTERS]
    key = Key(id or new_id(), project, name, scope, now_s, expires_s, None, None, start)
    with control.transaction() as connection:
        if STATEMENTS.run(connection, "ADD", asdict(key) | {"sha256": tokens.sha256(token)}).rowcount == 0:
            raise KeyExists(key.id)
        audit.record(connection, by, "created an API key", project, f"{name} ({scope}, {start}…)")
    return key, token


def new_id() -> str:
    return secrets.token_hex(ID_BYTES)


def list_all(control: Pool, project: str | None = None) -> list[Key]:
    """Return all keys, or those of one project, oldest first."""
    with control.connect() as connection:
        return [Key(*row) for row in STATEMENTS.run(connection, "OF_PROJECT", {"project": project}).fetchall()]


def find_valid(control: Pool, text: str, project: str | None, now_s: float) -> Key:
    """Return the valid key with this id, start or token; in a project, also the key with this name.

    Raises:
        ProjectNotFound
        KeyNotFound: no or several keys match, or a name has no project; the message lists the commands to type.
    """
    if project is not None:
        projects.find(control, project)
    values = {"project": project, "text": text, "start": text.removesuffix("…"), "sha256": tokens.sha256(text)}
    with control.connect() as connection:
        rows = STATEMENTS.run(connection, "MATCHES", values).fetchall()
    keys = [key for row in rows if (key := Key(*row)).is_valid(now_s)]
    if len(keys) == 1 and (project is not None or keys[0].name != text):
        return keys[0]
    place = f" of the project {project}" if project else ""
    if not keys:
        shown = "this token" if is_well_formed(text) else f"the id, start or name {text[:40]!r}"
        raise KeyNotFound(f"no valid key{place} has {shown}; `readership key list` shows the keys")
    choices = (f"`readership key revoke {key.id}` for {key.start}… of the project {key.project}" for key in keys)
    cause = f"{len(keys)} valid keys{place} match" if len(keys) > 1 else "a name needs --project:"
    raise KeyNotFound(f"{cause} {text[:40]!r}; type {' or '.join(choices)}")


def revoke(control: Pool, id: str, now_s: int, by: str | None = None) -> None:
    """Revoke a key. Each server process rejects it after at most `cache.TTL_S`. Raises KeyNotFound."""
    with control.transaction() as connection:
        row = STATEMENTS.run(connection, "LOCK", {"id": id}).fetchone()
        if row is None:
            raise KeyNotFound(f"no key has the id {id!r}; `readership key list` shows the ids")
        key = Key(*row)
        if key.revoked_s is None:
            STATEMENTS.run(connection, "REVOKE", {"id": id, "now_s": now_s})
            audit.record(connection, by, "revoked an API key", key.project, f"{key.name} ({key.scope}, {key.start}…)")


def revoke_all(control: Pool, project: str, internal_id: str, now_s: int) -> None:
    """Revoke all keys of a project, but not those of a project that was created under the same id meanwhile."""
    with control.transaction() as connection:
        values = {"project": project, "internal_id": internal_id, "now_s": now_s}
        STATEMENTS.run(connection, "REVOKE_OF_PROJECT", values)


def delete_of_demo(control: Pool, project: str, until_s: int) -> None:
    """Delete the `write` keys of a project that have its name and were created until a time."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE_OF_DEMO", {"project": project, "until_s": until_s})


def is_well_formed(token: str) -> bool:
    """Return whether prefix, length and checksum of a token are right."""
    prefix, _, random = token.rpartition("_")
    secret, checksum = random[:SECRET_CHARACTERS], random[SECRET_CHARACTERS:]
    return f"{prefix}_" in PREFIXES.values() and len(secret) == SECRET_CHARACTERS and _checksum(secret) == checksum


class Keyring:
    """Look-up of valid keys by token, with a cache."""

    def __init__(self, control: Pool, now_s: Callable[[], float] = time.time) -> None:
        self._control, self._now_s = control, now_s
        self._cache: Cache[BearerKey] = Cache()
        self._storing: asyncio.Task[None] | None = None
        """The last write of a time of use; only the event loop uses it."""

    def cached(self, token: str) -> BearerKey | None:
        """Return the cached key of a token; None if the key is not in the cache or has expired. Does no I/O."""
        key = self._cache.get(token)
        return key if key is not None and key.is_valid(self._now_s()) else None

    async def shared_look_up(self, token: str) -> BearerKey:
        """Return the result of `look_up`, which requests with the same token share, and store the time of use.

        No request waits for this write, which a lock of the database can block for seconds.

        Raises:
            KeyNotFound: see `look_up`.
        """
        from starlette.concurrency import run_in_threadpool  # noqa: PLC0415  # 0.03 s, and commands look up no token

        key, now_s = await self._cache.look_up(token, partial(self.look_up, token)), int(self._now_s())
        is_due = key.last_used_s is None or now_s - key.last_used_s >= LAST_USE_EVERY_S
        if is_due and (self._storing is None or self._storing.done()):  # else a later look-up stores the use
            self._storing = asyncio.ensure_future(run_in_threadpool(self._store_last_use, key, now_s))
        return key

    def look_up(self, token: str) -> BearerKey:
        """Return the valid key of a token from the database. Raises KeyNotFound."""
        with self._control.connect() as connection:
            row = STATEMENTS.run(connection, "BY_TOKEN", {"sha256": tokens.sha256(token)}).fetchone()
        if row is None or not (key := BearerKey(*row)).is_valid(self._now_s()):
            raise KeyNotFound("the API key is unknown, revoked or expired")
        return key

    def _store_last_use(self, key: Key, now_s: int) -> None:
        """Store the time of use. If the database is read-only, full or locked, the old time remains."""
        with best_effort(f"cannot store the last use of key {key.id}"), self._control.transaction() as connection:
            STATEMENTS.run(connection, "SET_LAST_USE", {"id": key.id, "now_s": now_s})


def _checksum(secret: str) -> str:
    number, digits = zlib.crc32(secret.encode()), ""
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(BASE62))
        digits = BASE62[digit] + digits
    return digits
