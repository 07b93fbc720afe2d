"""Limit on the new paths, referring hosts and query parameters that hits without a key add to a project in a day.

Anybody can send such hits. Without the limit, a stranger could add millions of values, which reports group and sort. A
value is new if no hit without a key had it in the last seven days. A hot log without values starts with the values of
the lake, so that the pages of a site keep their names after an upgrade. Further new values of a UTC day are stored as
`OTHER`; known values keep their names. Names of events that are sent with a key have a limit of their own, and
ENGAGEMENT has none.

The values are in the hot log as keyed hashes, at most eight times the limit for each project and dimension. They are
written in the transaction that stores the rows: all processes and nodes share the limit, and a restart changes nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import NamedTuple

from cachetools import LRUCache

from ingest.hits.event import NAMES_PER_DAY
from ingest.hits.hit import EPOCH, NEW_VALUES_PER_DAY
from ingest.hotlog.deduplication import DAY_S, SOURCE, STATEMENTS, project_prefix
from warehouse.columns.hits import NEW_VALUES
from warehouse.columns.visits import ENGAGEMENT
from warehouse.database.transaction import transaction
from warehouse.hotlog.connection import HotConnection
from warehouse.report.source_warnings import SourceWarning
from warehouse.schema import HOT, Row
from warehouse.tables import HITS_TABLE, Spec

_SERVER_NAME = "server_name"
"""The column `name` of events with a key: names that a stranger sends must not use up their limit."""
_NOUNS = {**NEW_VALUES, "name": "names of events", _SERVER_NAME: "names of events"}
OTHER: Mapping[str, str] = {**dict.fromkeys(_NOUNS, "(other)"), "path": "/(other)"}
"""Text that is stored in place of a new value above the limit, by the column."""
CACHED_MAX = 65_536
"""Maximum number of values, of all projects, that a process knows to have been stored today: 10 MB."""
_OF_BEACON = {spec: {name: spec.hot.names.index(name) for name in OTHER if name in spec.hot.names} for spec in SOURCE}
_OF_SERVER = {spec: {_SERVER_NAME: of["name"]} if "name" in of else {} for spec, of in _OF_BEACON.items()}
"""Indexes of the limited columns in a row: of a beacon, and of a server."""
_REFERRER = HOT.names.index("referrer")


class Value(NamedTuple):
    """A text in a column of a project."""

    project: str
    column: str
    text: str


class NewValues:
    """Limit of `per_day` new values of each column, project and day. `secret` is the key of the hashes."""

    def __init__(self, per_day: int = NEW_VALUES_PER_DAY, secret: bytes = b"") -> None:
        self._per_day, self._secret = per_day, secret
        self._stored_on: LRUCache[bytes, int] = LRUCache(CACHED_MAX)
        """Last day on which a value was stored, by its id."""

    def bounded(
        self, connection: HotConnection, rows: Sequence[Row], now_s: int, spec: Spec = HITS_TABLE
    ) -> Sequence[Row]:
        """Return the rows with OTHER in place of new values above the limit, in the caller's transaction."""
        day = now_s // DAY_S
        places_of = _places(spec)
        hits = Counter(value for row in rows for value in _values(row, places_of(row)))
        ids = {value: id for value in hits if self._stored_on.get(id := _id(value, self._secret)) != day}
        if not ids:
            return rows
        stored = dict(STATEMENTS.rows_of_each(connection, "SEEN_VALUE", [{"id": id} for id in ids.values()]))
        # Ids that this transaction adds are not cached yet: it may fail.
        self._stored_on.update((id, day) for id, stored_on in stored.items() if stored_on == day)
        above = self._count(connection, {value: hits[value] for value, id in ids.items() if id not in stored}, day)
        added = [{"id": id, "day": day} for value, id in ids.items() if value not in above and stored.get(id) != day]
        STATEMENTS.run_many(connection, "ADD_SEEN_VALUE", added)
        return [_renamed(row, above, places_of(row)) for row in rows] if above else rows

    def _count(self, connection: HotConnection, new: Mapping[Value, int], day: int) -> set[Value]:
        """Count new values, which have a number of hits each, and return those above the limit."""
        above: set[Value] = set()
        for project, column in dict.fromkeys(value[:2] for value in new):
            key = {"project": project, "column": column, "day": day}
            row = STATEMENTS.run(connection, "NEW_VALUES", key).fetchone()
            values = [value for value in new if value[:2] == (project, column)]
            most = self._per_day if column in NEW_VALUES else min(self._per_day, NAMES_PER_DAY)
            named = values[: max(0, most - (row[0] if row else 0))]
            other = values[len(named) :]
            counts = {"values": len(named), "hits": sum(new[value] for value in other)}
            STATEMENTS.run(connection, "COUNT_NEW_VALUES", {**key, **counts})
            above.update(other)
        return above


def has_values(connection: HotConnection) -> bool:
    """Return whether a value is stored: not in a hot log that is new, or that an older release wrote."""
    return STATEMENTS.run(connection, "HAS_SEEN_VALUE").fetchone() is not None


def add_values(connection: HotConnection, values: Iterable[tuple[str, str, str, int]], secret: bytes) -> None:
    """Add values of the lake: tuples of project, column, text and day in days since 1970. They do not count as new."""
    rows = [{"id": _id(Value(*value), secret), "day": day} for *value, day in values]
    with transaction(connection):
        STATEMENTS.run_many(connection, "ADD_SEEN_VALUE", sorted(rows, key=itemgetter("id")))


def warnings(connection: HotConnection, project: str) -> Iterator[SourceWarning]:
    """Yield a warning for each column in which hits of the last seven days had new values above the limit."""
    days = STATEMENTS.run(connection, "CAPPED_DAYS", {"project": project}).fetchall()
    for column, name in _NOUNS.items():
        hits = {day: number for day, of, number in days if of == column}
        if hits:
            last = EPOCH.date() + timedelta(max(hits))
            source = "server" if column == _SERVER_NAME else "beacon"
            yield SourceWarning("capped", (source,), len(hits), last, sum(hits.values()), name, OTHER[column])


def _places(spec: Spec) -> Callable[[Row], Mapping[str, int]]:
    source, of_beacon, of_server = SOURCE[spec], _OF_BEACON[spec], _OF_SERVER[spec]
    return lambda row: of_beacon if row[source] == "beacon" else of_server


def _values(row: Row, places: Mapping[str, int]) -> list[Value]:
    return [
        Value(str(row[0]), column, str(row[place]))
        for column, place in places.items()
        if row[place] not in (None, OTHER[column], ENGAGEMENT)
    ]


def _renamed(row: Row, above: set[Value], places: Mapping[str, int]) -> Row:
    values = list(row)
    for value in above.intersection(_values(row, places)):
        values[places[value.column]] = OTHER[value.column]
        if value.column == "referrer_host":
            values[_REFERRER] = None
    return tuple(values)


def _id(value: Value, secret: bytes) -> bytes:
    """Return the prefix of the project, and a keyed hash of 64 bits."""
    text = f"{value.column}\0{value.text}".encode()
    return project_prefix(value.project) + hashlib.blake2b(text, digest_size=8, key=secret[:64]).digest()
