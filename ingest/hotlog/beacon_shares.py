"""Shares of the limit on beacons per address, for nodes that use one PostgreSQL database.

A node that counted each beacon in PostgreSQL would wait for a second round trip. A node therefore accepts the first
`BeaconShares.size` beacons of an address by itself, and then takes shares of the rest of the limit, each of that size.
The sum of the shares in any 60 seconds is never above that rest.
"""

import threading
from dataclasses import dataclass
from functools import cached_property

from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.statements import has_table
from warehouse.hotlog.connection import HotConnection, Server
from warehouse.hotlog.postgresql import SCHEMA

LOCK_TIMEOUT_S = 3.0
"""Time for which a node waits until another one has taken a share, in seconds."""
SHARES_PER_LIMIT = 50
"""Number of shares into which a limit is divided."""
TABLE = "beacon_shares"
TIME_INDEX = f"{TABLE}_at_us"
"""Name of the index by which the expired shares are found."""
_CREATE = (
    f"""
CREATE UNLOGGED TABLE IF NOT EXISTS {TABLE} (
    client BYTEA, at_us BIGINT, beacons BIGINT NOT NULL, PRIMARY KEY (client, at_us)
)
""",
    f"CREATE INDEX IF NOT EXISTS {TIME_INDEX} ON {TABLE} (at_us)",
)
"""Statements that create the table. Its rows may be lost in a crash of the server, and need no sync of a disk."""
DELETED_MAX = 1_000
"""Maximum number of expired shares, and of shares of a clock that was set back, that TAKE deletes; TAKE adds one share.
Without a maximum, the first TAKE after a flood would delete all shares of the flood while other nodes wait."""
LOCK_KEY = 0x62656163
"""Key of the advisory lock under which one node at a time takes a share: `beac` in ASCII."""
_LOCK = f"SELECT pg_advisory_xact_lock({LOCK_KEY})"
TAKE = f"""
WITH expired AS (
         DELETE FROM {TABLE} WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM {TABLE} WHERE at_us <= %(now_us)s - %(window_us)s ORDER BY at_us LIMIT {DELETED_MAX}
         )) OR ctid = ANY (ARRAY(
             SELECT ctid FROM {TABLE} WHERE at_us > %(now_us)s + %(window_us)s ORDER BY at_us DESC LIMIT {DELETED_MAX}
         ))
     ),
     taken AS (
         SELECT coalesce(sum(beacons), 0)::BIGINT AS beacons, min(at_us) AS first_us FROM {TABLE}
         WHERE client = %(client)s AND at_us BETWEEN %(now_us)s - %(window_us)s + 1 AND %(now_us)s + %(window_us)s
     ),
     share AS (SELECT least(%(size)s, %(most)s - beacons) AS beacons, first_us FROM taken),
     added AS (INSERT INTO {TABLE} SELECT %(client)s, %(now_us)s, beacons FROM share WHERE beacons > 0
               ON CONFLICT (client, at_us) DO UPDATE SET beacons = {TABLE}.beacons + excluded.beacons)
SELECT beacons, first_us FROM share
"""
"""Statement that takes a share. Under the lock only one of them runs at a time, so each `ctid` names one row until the
statement ends."""


@dataclass(frozen=True, slots=True)
class Share:
    """Number of beacons that a node may accept, and the time from which it may take more, in microseconds since 1970.

    The number is 0 if the limit is reached.
    """

    beacons: int
    more_from_us: int


def create(connection: HotConnection) -> None:
    """Create the table in PostgreSQL, unless it exists. An older release created it without the index."""
    if isinstance(connection, PostgresqlConnection) and not has_table(connection, TIME_INDEX):
        with connection.changing_tables():
            for statement in _CREATE:
                connection.execute(statement)


class BeaconShares:
    """Shares that one server process takes of a limit of `beacons_max` per address in any `window_us` microseconds."""

    def __init__(self, server: Server, beacons_max: int, window_us: int) -> None:
        """Connect to nothing yet: most addresses send fewer beacons than a share."""
        self.size = max(1, beacons_max // SHARES_PER_LIMIT)
        """Number of beacons of a share."""
        self._server = server
        self._values = {"size": self.size, "most": beacons_max - self.size, "window_us": window_us}
        self._mutex = threading.Lock()

    def take(self, client: bytes, now_us: int) -> Share:
        """Take a share for a client at a time in microseconds since 1970. Raises ServerError without an answer."""
        values = {**self._values, "client": client, "now_us": now_us}
        with self._mutex:
            beacons, first_us = self._connection.execute_alone(TAKE, values).fetchone()
        return Share(max(0, beacons), (now_us if first_us is None else first_us) + self._values["window_us"])

    def close(self) -> None:
        if "_connection" in vars(self):
            self._connection.close()

    @cached_property
    def _connection(self) -> PostgresqlConnection:
        return PostgresqlConnection(self._server.url, SCHEMA, _LOCK, LOCK_TIMEOUT_S)
