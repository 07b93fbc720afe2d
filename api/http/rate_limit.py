"""The limits on beacons per address, network and project and minute, counted over all server processes.

The limit per address is counted over all nodes with one PostgreSQL, too.

The counts are in a SQLite file that is not synced to disk and is deleted when the service ends. A row has a hash of the
address instead of the address. Without PostgreSQL, only the processes of the service have the key of the hash.

With PostgreSQL, a node accepts the first beacons of an address by itself, and then takes shares of the limit: see
`ingest.hotlog.beacon_shares`. Worst case in 60 s: each other node overshoots by two shares, or leaves one unused.
"""

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from api.client_address import hashed, hashed_address, network
from ingest.errors import RETRY_AFTER_S, Overloaded
from ingest.hotlog.beacon_shares import BeaconShares
from warehouse.database.pool import open_file
from warehouse.database.postgresql import ServerError
from warehouse.database_errors import is_temporary, status_of

Result = TypeVar("Result")

WINDOW_S = 60
WINDOW_US = WINDOW_S * 1_000_000
NETWORK_FACTOR, PROJECT_FACTOR = 4, 100
"""Limits of an IPv6 /56 network, which a provider gives to one household, and of a project, as multiples of the limit
of an address. Each node counts them by itself."""
OPEN_TIMEOUT_S = 5
RETRY_DELAYS_S = (0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)
"""Delays before the attempts to count a beacon while another process counts: 0.5 s in all, without blocking the event
loop. SQLite's own busy timeout would block it, and a thread would add 0.1 ms to each beacon."""

_CREATE = """
CREATE TABLE IF NOT EXISTS uses (who BLOB, at_us INTEGER, n INTEGER, PRIMARY KEY (who, at_us)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shares (who BLOB, at_us INTEGER, n INTEGER, PRIMARY KEY (who, at_us)) WITHOUT ROWID;
"""
_IN_WINDOW = "who = :who AND at_us > :now_us - :window_us AND at_us <= :now_us"
_USE = f"""
INSERT INTO uses SELECT :who, :now_us, 1
WHERE (SELECT coalesce(sum(n), 0) FROM uses WHERE {_IN_WINDOW}) < :most
ON CONFLICT (who, at_us) DO UPDATE SET n = n + 1
"""
_USE_OF_SHARES = _USE.replace(":most", f":most + (SELECT coalesce(sum(n), 0) FROM shares WHERE {_IN_WINDOW})")
_OLDEST = f"SELECT min(at_us) FROM uses WHERE {_IN_WINDOW}"
_ADD_SHARE = "INSERT INTO shares VALUES (?, ?, ?) ON CONFLICT (who, at_us) DO UPDATE SET n = n + excluded.n"


class RateLimit:
    """A limit of `uses_max` uses per address in any 60 seconds, and of multiples for networks and projects."""

    def __init__(
        self,
        path: Path,
        uses_max: int,
        secret: bytes,
        shares: BeaconShares | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Open the counts of this node. `shares` of the limit are taken together with the other nodes.

        `now` returns the time in seconds since 1970.
        """
        self._now = now
        self._uses_max, self._limit = shares.size if shares else uses_max, uses_max
        self._use = _USE_OF_SHARES if shares else _USE
        self._secret = secret
        self._shares = shares
        self._exhausted_until_us: dict[bytes, int] = {}
        """Time until which no share of an address is free, in microseconds since 1970, by the hash of the address."""
        self._taking = asyncio.Lock()
        self._connection = open_file(path, OPEN_TIMEOUT_S, "journal_mode=WAL", "synchronous=OFF")
        self._connection.executescript(_CREATE)
        self._connection.execute("PRAGMA busy_timeout=0")
        self._swept_us = 0

    async def count(self, address: str, project: str) -> int | None:
        """Count one use now, as `use` does, and retry while another process counts. Take shares if they are needed.

        Raises:
            Overloaded: other processes or a full disk prevent the count, or PostgreSQL does not answer.
        """
        retry_after_s = await self._count_address(address)
        if retry_after_s is not None:
            return retry_after_s
        return await _retried(lambda: self.use_together(address, project, self._now()))

    async def _count_address(self, address: str) -> int | None:
        retry_after_s = await _retried(lambda: self.use(address, self._now()))
        if retry_after_s is None or self._shares is None or self._is_exhausted(address):
            return retry_after_s
        async with self._taking:  # the beacons that wait here use the same share
            while (retry_after_s := await _retried(lambda: self.use(address, self._now()))) is not None:
                if self._is_exhausted(address):
                    break
                await self._take_share(self._shares, address)
        return retry_after_s

    def use(self, address: str, now_s: float) -> int | None:
        """Count one use and return None, or return the seconds until the next use is within the limit.

        The method never waits, because it runs on the event loop.

        Raises:
            sqlite3.OperationalError: another process counts at this moment, or the disk is full.
        """
        self._sweep(_us(now_s))
        return self._use_of(self._use, hashed_address(address, self._secret), self._uses_max, _us(now_s))

    def use_together(self, address: str, project: str, now_s: float) -> int | None:
        """Count one use of the address's /56 network and of the project, as `use` does.

        The uses of a second are counted as one row, at its end: a project may have many.
        """
        end_us = (math.floor(now_s) + 1) * 1_000_000
        limits = [(hashed(f"project {project}", self._secret), PROJECT_FACTOR)]
        if ":" in (household := network(address, 56)):
            limits.insert(0, (hashed(household, self._secret), NETWORK_FACTOR))
        for who, factor in limits:
            retry_after_s = self._use_of(_USE, who, factor * self._limit, end_us)
            if retry_after_s is not None:
                return retry_after_s
        return None

    def _use_of(self, statement: str, who: bytes, most: int, now_us: int) -> int | None:
        values = {"who": who, "now_us": now_us, "most": most, "window_us": WINDOW_US}
        if self._connection.execute(statement, values).rowcount == 1:
            return None
        oldest_us: int = self._connection.execute(_OLDEST, values).fetchone()[0]
        return max(1, math.ceil((oldest_us + WINDOW_US - now_us) / 1_000_000))

    def close(self) -> None:
        self._connection.close()

    async def _take_share(self, shares: BeaconShares, address: str) -> None:
        """Take a share of the limit for an address, or record that no share is free."""
        client, now_us = hashed_address(address, self._secret), _us(self._now())
        try:
            share = await run_in_threadpool(shares.take, client, now_us)
        except ServerError as error:
            if not is_temporary(error):
                raise
            raise Overloaded(f"beacons cannot be counted: {status_of(error)}", RETRY_AFTER_S) from error
        if share.beacons:
            await _retried(lambda: self._connection.execute(_ADD_SHARE, (client, now_us, share.beacons)))
        else:
            self._exhausted_until_us[client] = share.more_from_us

    def _is_exhausted(self, address: str) -> bool:
        """Return whether this process has found no free share of an address, and none can be free yet."""
        until_us = self._exhausted_until_us.get(hashed_address(address, self._secret), 0)
        return 0 < until_us - _us(self._now()) <= WINDOW_US  # a longer time means that the clock was set back

    def _sweep(self, now_us: int) -> None:
        """Delete the uses and shares outside the window, once per window."""
        if abs(now_us - self._swept_us) >= WINDOW_US:
            for table in ("uses", "shares"):
                self._connection.execute(
                    f"DELETE FROM {table} WHERE at_us <= ? OR at_us > ?", (now_us - WINDOW_US, now_us + WINDOW_US)
                )
            self._exhausted_until_us.clear()
            self._swept_us = now_us


def _us(seconds: float) -> int:
    return int(seconds * 1_000_000)


async def _retried(count: Callable[[], Result]) -> Result:
    """Return the result of `count`, called again while another process counts. Raises Overloaded in the end."""
    error: sqlite3.OperationalError | None = None
    for delay_s in RETRY_DELAYS_S:
        if delay_s:
            await asyncio.sleep(delay_s)
        try:
            return count()
        except sqlite3.OperationalError as busy:
            error = busy
    raise Overloaded(f"beacons cannot be counted: {error}", RETRY_AFTER_S)
