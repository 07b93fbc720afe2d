"""Many page views at once into rows of the lake: each distinct text is looked at once, and stands once."""

from collections.abc import Sequence
from threading import Lock

import polars as pl
import pyarrow as pa

from ingest.hit import Hit
from ingest.path import host
from ingest.processes import Kind, Tell, told
from ingest.texts import dictionary, distinct, encoded
from warehouse.schema import HOT, RULED

TOLD = [name for name in RULED.names if name != "user_agent"]
"""The columns of a kind, in its order."""
Readers = dict[tuple[str, str | None], int]
"""Views by traffic and agent."""
VIEWS = pl.Schema(
    {
        "path": pl.String(),
        "ts_us": pl.Int64(),
        "user_agent": pl.String(),
        "referrer": pl.String(),
        "utm_source": pl.String(),
        "status": pl.Int16(),
    }
)
"""A page view a row, as `ingest.hit.Hit` has them; its texts may be categoricals."""


def of_hits(hits: list[Hit]) -> pl.DataFrame:
    """Page views that the parser of a format found."""
    columns = {
        "path": [hit.path for hit in hits],
        "ts_us": [hit.ts_us for hit in hits],
        "user_agent": [hit.user_agent for hit in hits],
        "referrer": [hit.referrer for hit in hits],
        "utm_source": [hit.utm_source for hit in hits],
        "status": [hit.status for hit in hits],
    }
    return pl.DataFrame(columns, schema=VIEWS)


class Kinds:
    """The kind of each user agent that was asked for, and each kind once.

    Safe for several threads; they take turns, so that none is told twice.
    """

    def __init__(self, tell: Tell = told) -> None:
        self._tell = tell
        self._lock = Lock()
        self._numbers: dict[Kind, int] = {}
        self._dtype: pl.DataType = pl.Null()
        self._known = pl.Series(dtype=pl.Int32)
        """Numbers of kinds, by the numbers of the categorical that was asked for last."""

    def of(self, user_agents: pl.Series) -> tuple[pa.Array, list[Kind]]:
        """For each of distinct user agents, a categorical, the number of its kind; and the kinds by number."""
        places = user_agents.to_physical()
        with self._lock:
            if user_agents.dtype != self._dtype:
                self._dtype, self._known = user_agents.dtype, pl.Series(dtype=pl.Int32)
            highest: int = places.max() if places.len() else -1  # type: ignore[assignment]  # they are numbers
            self._known = self._known.extend_constant(None, max(0, highest + 1 - self._known.len()))
            missing = user_agents.filter(self._known.gather(places).is_null())
            kind_of, kinds = self._tell(missing.cast(pl.String).to_list())
            numbers = [self._numbers.setdefault(kind, len(self._numbers)) for kind in kinds]
            found = pl.Series([numbers[place] for place in kind_of], dtype=pl.Int32)
            self._known = self._known.scatter(missing.to_physical(), found)
            return self._known.gather(places).to_arrow(), list(self._numbers)


def page_views(project: str, views: pl.DataFrame, received_us: int, kinds: Kinds) -> tuple[pa.Table, Readers]:
    """Page views (VIEWS) of a log as rows of `warehouse.schema.HOT`, their texts dictionary-encoded and
    in no order, and who made them."""
    agent_of, agents = distinct(views["user_agent"])
    numbers, known = kinds.of(agents)
    kind_of, referrers = numbers.take(agent_of), encoded(views["referrer"])
    hosts = [host(text) if text else None for text in referrers.dictionary.to_pylist()]
    texts = {
        "project_id": _constant(project, views.height),
        "path": encoded(views["path"]),
        **{name: _looked_up([kind[place] for kind in known], kind_of) for place, name in enumerate(TOLD)},
        "user_agent": dictionary(agent_of, agents),
        "referrer": referrers,
        "referrer_host": _looked_up(hosts, referrers.indices),
        "utm_source": encoded(views["utm_source"]),
        "source": _constant("log", views.height),
    }
    others = {
        "ts": views["ts_us"].rechunk().to_arrow().cast(HOT.field("ts").type),
        "status": views["status"].rechunk().to_arrow(),
        "received_at": pa.repeat(pa.scalar(received_us, HOT.field("received_at").type), views.height),
    }
    found = {**texts, **others}
    nothing = {name: pa.nulls(views.height, HOT.field(name).type) for name in HOT.names if name not in found}
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
