"""Beacons of one address within a minute, counted over all workers.

The counts live in a SQLite file that needs no durability and goes with the service. No address is stored: a row is a
hash, keyed by a secret that only the running processes know.
"""

import hashlib
import ipaddress
import math
import sqlite3
from pathlib import Path

WINDOW_S = 60
WINDOW_US = WINDOW_S * 1_000_000
OPEN_TIMEOUT_S = 5

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
    """At most `most` uses by one address in any 60 seconds."""

    def __init__(self, path: Path, most: int, secret: bytes) -> None:
        self._most = most
        self._secret = secret
        self._connection = sqlite3.connect(path, timeout=OPEN_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.executescript(_CREATE)
        self._connection.execute("PRAGMA busy_timeout=0")
        self._swept_us = 0

    def use(self, address: str, now_s: float) -> int | None:
        """Count one use; None if it is within the limit, else the whole seconds until the next one can be.

        It waits for nobody, because it is called on the event loop.

        Raises:
            sqlite3.OperationalError: another worker counts at this moment, or the disk is full; nothing is counted.
        """
        who = hashlib.blake2b(_network(address).encode(), digest_size=16, key=self._secret).digest()
        now_us = int(now_s * 1_000_000)
        values = {"who": who, "now_us": now_us, "most": self._most, "window_us": WINDOW_US}
        self._sweep(now_us)
        if self._connection.execute(_USE, values).rowcount == 1:
            return None
        oldest_us: int = self._connection.execute(_OLDEST, values).fetchone()[0]
        return max(1, math.ceil((oldest_us + WINDOW_US - now_us) / 1_000_000))

    def close(self) -> None:
        self._connection.close()

    def _sweep(self, now_us: int) -> None:
        if abs(now_us - self._swept_us) >= WINDOW_US:
            self._connection.execute(
                "DELETE FROM uses WHERE at_us <= ? OR at_us > ?", (now_us - WINDOW_US, now_us + WINDOW_US)
            )
            self._swept_us = now_us


def _network(address: str) -> str:
    """An IPv6 address stands for its /64: one household or machine has all of that."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address, 64), strict=False))
    except ValueError:
        return address
