"""The limit on beacons per address and minute, counted over all server processes.

The counts are in a SQLite file that is not synced to disk and is deleted when the service ends. A row has a hash of the
address instead of the address; only the processes of the service have the key of the hash.
"""

import hashlib
import ipaddress
import math
import sqlite3
import time
from pathlib import Path

from ingest.errors import RETRY_AFTER_S, Overloaded

WINDOW_S = 60
WINDOW_US = WINDOW_S * 1_000_000
OPEN_TIMEOUT_S = 5
RETRY_DELAYS_S = (0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256)
"""Delays before the attempts to count a beacon while another process counts: 0.5 s in all, without blocking the event
loop. SQLite's own busy timeout would block it, and a thread would add 0.1 ms to each beacon."""

_CREATE = """
CREATE TABLE IF NOT EXISTS uses (who BLOB, at_us INTEGER, n INTEGER, PRIMARY KEY (who, at_us)) WITHOUT ROWID;
"""
_USE = """
INSERT INTO uses SELECT :who, :now_us, 1
WHERE (SELECT coalesce(sum(n), 0) FROM uses
       WHERE who = :who AND at_us > :now_us - :window_us AND at_us <= :now_us) < :most
ON CONFLICT (who, at_us) DO UPDATE SET n = n + 1
"""
_OLDEST = "SELECT min(at_us) FROM uses WHERE who = :who AND at_us > :now_us - :window_us AND at_us <= :now_us"


class RateLimit:
    """A limit of `uses_max` uses per address in any 60 seconds."""

    def __init__(self, path: Path, uses_max: int, secret: bytes) -> None:
        self._uses_max = uses_max
        self._secret = secret
        self._connection = sqlite3.connect(path, timeout=OPEN_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.executescript(_CREATE)
        self._connection.execute("PRAGMA busy_timeout=0")
        self._swept_us = 0

    async def count(self, address: str) -> int | None:
        """Count one use now, as `use` does, and retry while another process counts.

        Raises:
            Overloaded: other processes or a full disk prevent the count.
        """
        import asyncio  # noqa: PLC0415  # 0.03 s of each command's start, which needs only the file's schema from here

        error: sqlite3.OperationalError | None = None
        for delay_s in RETRY_DELAYS_S:
            if delay_s:
                await asyncio.sleep(delay_s)
            try:
                return self.use(address, time.time())
            except sqlite3.OperationalError as busy:
                error = busy
        raise Overloaded(f"beacons cannot be counted: {error}", RETRY_AFTER_S)

    def use(self, address: str, now_s: float) -> int | None:
        """Count one use and return None, or return the seconds until the next use is within the limit.

        The method never waits, because it runs on the event loop.

        Raises:
            sqlite3.OperationalError: another process counts at this moment, or the disk is full.
        """
        client = hashed_address(address, self._secret)
        now_us = int(now_s * 1_000_000)
        values = {"who": client, "now_us": now_us, "most": self._uses_max, "window_us": WINDOW_US}
        self._sweep(now_us)
        if self._connection.execute(_USE, values).rowcount == 1:
            return None
        oldest_us: int = self._connection.execute(_OLDEST, values).fetchone()[0]
        return max(1, math.ceil((oldest_us + WINDOW_US - now_us) / 1_000_000))

    def close(self) -> None:
        self._connection.close()

    def _sweep(self, now_us: int) -> None:
        """Delete the uses outside the window, once per window."""
        if abs(now_us - self._swept_us) >= WINDOW_US:
            self._connection.execute(
                "DELETE FROM uses WHERE at_us <= ? OR at_us > ?", (now_us - WINDOW_US, now_us + WINDOW_US)
            )
            self._swept_us = now_us


def hashed_address(address: str, secret: bytes) -> bytes:
    """Return the keyed hash of a client's address, or of its network if that is one client: see `_network`."""
    return hashlib.blake2b(_network(address).encode(), digest_size=16, key=secret).digest()


def unmapped(address: str) -> str:
    """Return the IPv4 address in an IPv4-mapped one, such as `::ffff:192.0.2.1`; any other address as it is.

    A socket that listens on `::` also accepts IPv4 connections, and has their addresses in this form.
    """
    if not address.lower().startswith("::ffff:"):
        return address
    try:
        return str(ipaddress.IPv6Address(address).ipv4_mapped or address)
    except ValueError:
        return address


def _network(address: str) -> str:
    """Return the /64 network of an IPv6 address, because one machine can use all addresses of its /64 network."""
    address = unmapped(address)
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address, 64), strict=False))
    except ValueError:
        return address
