"""Many page views at once into rows of the lake: each distinct text is looked at once, and stands once."""

from collections.abc import Sequence

import pyarrow as pa

from ingest.classification.user_agent_cache import Columns, UserAgentCache
from ingest.hits.hit import Hit
from ingest.hits.url import host
from ingest.imports.dictionary import TEXTS, compact
from warehouse.schema import CLASSIFICATION, HOT

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


def page_views(
    project: str, views: pa.Table, received_us: int, user_agents: UserAgentCache
) -> tuple[pa.Table, Readers]:
    """Page views (VIEWS) of a log as rows of `warehouse.schema.HOT`, their texts dictionary-encoded and
    in no order, and who made them."""
    path, user_agent, referrer, utm_source = (
        compact(views[name]) for name in ("path", "user_agent", "referrer", "utm_source")
    )
    known = user_agents.columns_of_all(user_agent.dictionary.to_pylist())
    hosts = [host(text) for text in referrer.dictionary.to_pylist()]
    found = {
        "project_id": _constant(project, views.num_rows),
        "ts": views["ts_us"].combine_chunks().cast(HOT.field("ts").type),
        "path": path,
        **{
            name: _looked_up([columns[place] for columns in known], user_agent.indices)
            for place, name in enumerate(CLASSIFICATION.names)
            if name != "user_agent"
        },
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
    return rows, _readers(user_agent.indices, known)


def _readers(codes: pa.Array, known: Sequence[Columns]) -> Readers:
    traffic, agent = CLASSIFICATION.names.index("traffic"), CLASSIFICATION.names.index("agent")
    counts: Readers = {}
    for found in codes.value_counts().to_pylist():
        columns = known[found["values"]]
        reader = (str(columns[traffic]), columns[agent])
        counts[reader] = counts.get(reader, 0) + found["counts"]
    return counts


def _looked_up(values: Sequence[str | None], codes: pa.Array) -> pa.DictionaryArray:
    """`values[code]` for each code, with the distinct values as the dictionary."""
    distinct = pa.array(values, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(distinct.indices.take(codes), distinct.dictionary)


def _constant(value: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value], pa.string()))
