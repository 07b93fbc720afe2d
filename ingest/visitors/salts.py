"""Salts: 32 random bytes for each project and UTC day, without which no visitor leads to an address.

All processes of a folder share the file SALTS, and all nodes the table of their PostgreSQL database. SALTS is a file of
its own, so that backups of the control database have no salt. A salt is destroyed `LIFE_S` after its day and after its
last use, such as by an import of an old log.
"""

import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Lock
from weakref import WeakSet

from ingest.visitors.majority import Majority
from ingest.visitors.visitor import Salt, SaltUnread
from warehouse.control import database
from warehouse.database.pool import Pool, PoolError, open_file
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.statements import Connection, Statements
from warehouse.database.transaction import transaction
from warehouse.database.url import libpq_url
from warehouse.folder import SALTS
from warehouse.report.source_warnings import SourceWarning

LIFE_S = 48 * 3600
"""Time from the end of a day, and from the last use of its salt, to the deletion of the salt, in seconds."""
CACHED_S, CACHED_MAX = 3600, 10_240
"""Time for which a process uses a salt in memory, in seconds, and the maximum number of these salts: more than the days
of a post."""
RETRY_S, WAIT_S = 60, 2.0
"""Time without visitors after the file did not answer, and the timeout for its lock, in seconds."""
SALT_BYTES, DAY_S = 32, 86_400
WARNED_DAYS = 7
"""Number of days for which a warning about a source is shown."""
STATEMENTS = Statements(Path(__file__).with_suffix(".sql"))
LOG = logging.getLogger("readership.visitors")
_OPEN = WeakSet["Salts"]()
"""Salts of this process."""


class Salts:
    """Salts of one store, cached. Safe for several threads. Without a pool, there are none."""

    def __init__(self, pool: Pool | None, now: Callable[[], float] = time.time) -> None:
        self._pool, self._now, self._lock = pool, now, Lock()
        self._cache: dict[tuple[str, int], tuple[Salt, float]] = {}
        """Salts in memory, each with the time of its last use; TTLCache takes 4 µs of a post."""
        self._votes: dict[tuple[str, int, str], Majority] = {}
        self._majorities = set[tuple[str, int, str]]()
        """Projects, days and sources that the next `read` or `close` stores. Both may wait for the database."""
        self._retry_s = 0.0
        _OPEN.add(self)

    def __bool__(self) -> bool:
        return self._pool is not None

    def of(self, project: str, days: Collection[int]) -> dict[int, Salt]:
        """Return the salts by day, created in one transaction if missing; none without a pool.

        May wait for the database. If it does not answer, views have no visitor for RETRY_S: they must be stored without
        waiting again.
        """
        salts = self._cached(project, days)
        missing = [day for day in days if day not in salts]
        if self._pool is None or not missing or self._now() < self._retry_s:
            return salts
        try:
            read = self.read(project, missing)
        except PoolError as error:
            self._retry_s = self._now() + RETRY_S
            LOG.error("No salts: visitors are not counted for %s s: %s", RETRY_S, error)  # noqa: TRY400  # it has the cause
            return salts
        new = {day: Salt(salt, partial(self._vote, project, day)) for day, salt in read.items()}
        now_s = self._now()
        self.forget_unused()
        with self._lock:
            self._cache = self._cache if len(self._cache) < CACHED_MAX else {}
            self._cache |= {(project, day): (salt, now_s + CACHED_S) for day, salt in new.items()}
        return salts | new

    def cached(self, project: str, days: Collection[int]) -> dict[int, Salt]:
        """Return the salts by day from memory; none without a pool. Raises SaltUnread if `of` has to read one."""
        salts = self._cached(project, days)
        missing = next((day for day in days if day not in salts), None)
        if self._pool is not None and missing is not None and self._now() >= self._retry_s:
            raise SaltUnread(missing)
        return salts

    def read(self, project: str, days: Collection[int]) -> dict[int, bytes]:
        """Return the salts of days, created if missing, and record their use. Without a pool, there are none."""
        if self._pool is None:
            return {}
        now_s, salts = int(self._now()), dict[int, bytes]()
        with self._pool.transaction() as connection:
            for day in sorted(days):  # in one order, so that two nodes cannot wait for each other
                values = {"project": project, "day": day, "salt": secrets.token_bytes(SALT_BYTES), "now_s": now_s}
                [(salt,)] = STATEMENTS.run(connection, "SALT", values).fetchall()
                salts[day] = bytes(salt)
            self._store_majorities(connection)
        return salts

    def warnings(self, project: str) -> Iterator[SourceWarning]:
        """Yield a warning for each source most of whose views had one network on one of the last WARNED_DAYS."""
        if self._pool is None:
            return
        with self._pool.connect() as connection:
            values = {"project": project, "since": self._first_warned()}
            rows = STATEMENTS.run(connection, "MAJORITIES", values).fetchall()
        for source, days, last in rows:
            yield SourceWarning("one_address", (source,), days, date(1970, 1, 1) + timedelta(last))

    def delete_expired(self) -> None:
        """Destroy the salts whose day and last use are LIFE_S ago."""
        self._delete("DELETE_EXPIRED", until_s=int(self._now()) - LIFE_S)
        self._delete("DELETE_OLD_MAJORITIES", since=self._first_warned())

    def forget_unused(self) -> None:
        """Remove the salts from memory that were read CACHED_S ago."""
        with self._lock:
            self._cache = {key: entry for key, entry in self._cache.items() if entry[1] > self._now()}

    def delete_project(self, project: str) -> None:
        self._delete("DELETE_OF_PROJECT", project=project)
        self._delete("DELETE_MAJORITIES_OF_PROJECT", project=project)

    def close(self) -> None:
        """Store what was seen for the warnings, unless the database does not answer, and close the connections."""
        if self._pool is not None:
            if self._majorities:
                with suppress(PoolError), self._pool.transaction() as connection:
                    self._store_majorities(connection)
            self._pool.close()

    def _cached(self, project: str, days: Collection[int]) -> dict[int, Salt]:
        now_s, cache = self._now(), self._cache
        return {day: found[0] for day in days if (found := cache.get((project, day))) and found[1] > now_s}

    def _vote(self, project: str, day: int, source: str, blocks: bytes) -> None:
        key = project, day, source
        with self._lock:
            if (majority := self._votes.get(key)) is None:
                for old in [each for each in self._votes if each[1] < int(self._now()) // DAY_S - 1]:
                    del self._votes[old]  # a vote has a network
                majority = self._votes[key] = Majority()
            if majority.add(blocks):
                self._majorities.add(key)

    def _store_majorities(self, connection: Connection) -> None:
        with self._lock:
            majorities, self._majorities = self._majorities, set()
        for project, day, source in majorities:
            STATEMENTS.run(connection, "ADD_MAJORITY", {"project": project, "day": day, "source": source})

    def _first_warned(self) -> int:
        return int(self._now()) // DAY_S - WARNED_DAYS

    def _delete(self, statement: str, **values: object) -> None:
        assert self._pool is not None
        with self._pool.connect() as connection:
            if STATEMENTS.run_alone(connection, statement, values).rowcount:
                STATEMENTS.run(connection, "REWRITE")


NO_SALTS = Salts(None)
"""Salts of a service that counts no visitors."""


def open_salts(url: str, data: Path, *, is_on: bool = True, now: Callable[[], float] = time.time) -> Salts:
    """Open the salts in the database of `url`, or in a data folder, and destroy the expired ones.

    Return NO_SALTS unless `is_on`.
    """
    if not is_on:
        return NO_SALTS
    server = libpq_url(url)
    opened = partial(PostgresqlConnection, server) if server else partial(_open_file, data / SALTS)
    salts = Salts(pool := Pool(url, opened), now)
    if server is None:
        _replace_damaged(data / SALTS)
    with pool.connect() as connection:
        if not STATEMENTS.is_complete(connection):
            with transaction(connection):
                database.STATEMENTS.run(connection, "LOCK_SCHEMA")
                STATEMENTS.create(connection)
                STATEMENTS.run(connection, "UNLOG")
    salts.delete_expired()
    return salts


def delete_expired(url: str, data: Path, now: datetime) -> bool:
    """Destroy the salts of a data folder that are expired at a time, also in this process's memory; return True."""
    open_salts(url, data, now=now.timestamp).close()
    for each in [*_OPEN]:
        each.forget_unused()
    return True


def _replace_damaged(file: Path) -> None:
    """Delete a file that is no database: without its salts, readers of these days count again."""
    try:
        _open_file(file).close()
    except sqlite3.OperationalError:
        return  # it is locked
    except sqlite3.DatabaseError as error:
        LOG.warning("%s is damaged, and is created again: %s", file, error)
        file.unlink()


def _open_file(file: Path) -> sqlite3.Connection:
    """Open the file with a rollback journal: a write-ahead log would contain deleted salts."""
    file.touch(0o600)  # before SQLite creates it for everybody
    return open_file(file, WAIT_S, "journal_mode=DELETE", "synchronous=FULL", "secure_delete=ON", "temp_store=MEMORY")
