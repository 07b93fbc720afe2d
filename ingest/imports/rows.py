"""Many page views at once into rows of the lake: each distinct text is looked at once, and stands once."""

from collections.abc import Sequence
from sys import getsizeof
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from ingest.classification.pool import Kind, Tell, told
from ingest.hits.hit import Hit
from ingest.hits.url import host
from ingest.imports.dictionary import TEXTS, compact
from warehouse.schema import HOT, RULED

TOLD = [name for name in RULED.names if name != "user_agent"]
"""The columns of a kind, in its order."""
Readers = dict[tuple[str, str | None], int]
"""Views by traffic and agent."""
VIEWS = pa.schema(
    {
        "path": TEXTS,
        "ts_us": pa.int64(),
        "user_agent": TEXTS,
        "referrer": TEXTS,
        "utm_source": TEXTS,
        "status": pa.int16(),
    }
)
"""A page view a row, as `ingest.hits.hit.Hit` has them; a dictionary may have texts that no row has."""
KNOWN_BYTES_MAX = 32 * 1024 * 1024
"""Maximum size of the cached user agents and their kinds, in bytes."""


def of_hits(hits: list[Hit]) -> pa.Table:
    """Page views that the parser of a format found."""
    columns = {
        "path": [hit.path for hit in hits],
        "ts_us": [hit.ts_us for hit in hits],
        "user_agent": [hit.user_agent for hit in hits],
        "referrer": [hit.referrer for hit in hits],
        "utm_source": [hit.utm_source for hit in hits],
        "status": [hit.status for hit in hits],
    }
    return pa.table(
        [
            pa.array(columns[field.name], pa.string()).dictionary_encode()
            if field.type == TEXTS
            else pa.array(columns[field.name], field.type)
            for field in VIEWS
        ],
        schema=VIEWS,
    )


class Kinds:
    """Cache of the kind of each user agent that was looked up, and of each distinct kind.

    Safe for several threads: they take turns, and look up no user agent twice while it is cached. Both caches are
    dropped together at the first call that sees more than `bytes_max`, which bounds their size to that and the user
    agents of one call. Kinds need a bound too: a parser takes the name of an unknown bot from the user agent's text.
    """

    def __init__(self, tell: Tell = told, bytes_max: int = KNOWN_BYTES_MAX) -> None:
        self._tell = tell
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._known = pa.array([], pa.string())
        self._number_of = pa.array([], pa.int32())
        self._numbers: dict[Kind, int] = {}
        self._kind_bytes = 0

    def of(self, user_agents: pa.Array) -> tuple[pa.Array, list[Kind]]:
        """Return for each of distinct user agents the number of its kind, and the kinds by number.

        The numbers are valid for the list that comes with them: a later call may number the same kinds in another way.
        """
        with self._lock:
            if self.nbytes > self._bytes_max:
                self._drop()
            found = self._number_of.take(pc.index_in(user_agents, self._known))
            is_missing = found.is_null()
            missing = user_agents.filter(is_missing)
            kind_of, kinds = self._tell(missing.to_pylist())
            places = pa.array([self._number(kind) for kind in kinds], pa.int32())
            numbers = places.take(pa.array(kind_of, pa.int32()))
            self._known = pa.concat_arrays([self._known, missing])
            self._number_of = pa.concat_arrays([self._number_of, numbers])
            return pc.replace_with_mask(found, is_missing, numbers), list(self._numbers)

    @property
    def nbytes(self) -> int:
        """Size of both caches in bytes; texts that kinds share are counted for each."""
        return int(self._known.nbytes) + int(self._number_of.nbytes) + self._kind_bytes

    def _number(self, kind: Kind) -> int:
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._numbers)
            self._kind_bytes += getsizeof(kind) + sum(map(getsizeof, kind))
        return number

    def _drop(self) -> None:
        self._known, self._number_of = self._known[:0], self._number_of[:0]
        self._numbers = {}
        self._kind_bytes = 0


def page_views(project: str, views: pa.Table, received_us: int, kinds: Kinds) -> tuple[pa.Table, Readers]:
    """Page views (VIEWS) of a log as rows of `warehouse.schema.HOT`, their texts dictionary-encoded and
    in no order, and who made them."""
    path, user_agent, referrer, utm_source = (
        compact(views[name]) for name in ("path", "user_agent", "referrer", "utm_source")
    )
    numbers, known = kinds.of(user_agent.dictionary)
    kind_of = numbers.take(user_agent.indices)
    hosts = [host(text) for text in referrer.dictionary.to_pylist()]
    found = {
        "project_id": _constant(project, views.num_rows),
        "ts": views["ts_us"].combine_chunks().cast(HOT.field("ts").type),
        "path": path,
        **{name: _looked_up([kind[place] for kind in known], kind_of) for place, name in enumerate(TOLD)},
        "user_agent": user_agent,
        "referrer": referrer,
        "referrer_host": _looked_up(hosts, referrer.indices),
        "utm_source": utm_source,
        "status": views["status"].combine_chunks(),
        "source": _constant("log", views.num_rows),
        "received_at": pa.repeat(pa.scalar(received_us, HOT.field("received_at").type), views.num_rows),
    }
    nothing = {name: pa.nulls(views.num_rows, HOT.field(name).type) for name in HOT.names if name not in found}
    rows = pa.table({name: {**found, **nothing}[name] for name in HOT.names})
    return rows, _readers(kind_of, known)


def _readers(kind_of: pa.Array, known: list[Kind]) -> Readers:
    traffic, agent = TOLD.index("traffic"), TOLD.index("agent")
    counts: Readers = {}
    for found in kind_of.value_counts().to_pylist():
        kind = known[found["values"]]
        reader = (str(kind[traffic]), kind[agent])
        counts[reader] = counts.get(reader, 0) + found["counts"]
    return counts


def _looked_up(values: Sequence[str | None], codes: pa.Array) -> pa.DictionaryArray:
    """`values[code]` for each code, with the distinct values as the dictionary."""
    places: dict[str, int] = {}
    place_of = [None if value is None else places.setdefault(value, len(places)) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(place_of, pa.int32()).take(codes), pa.array(places, pa.string()))


def _constant(value: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value], pa.string()))
