"""All requests of a log, counted by day, user agent, kind, status, cache and time of the response."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.formats.kinds import kind_of
from ingest.formats.request import Request
from ingest.imports.dictionary import TEXTS
from warehouse.schema import TIMESTAMP

MS_BELOW = tuple(step * 10**power for power in range(6) for step in (1, 2, 5))
"""Upper bounds of the times by which requests are counted, in milliseconds. A longer time counts with the last one."""
KEY = {"date": pa.date32(), "user_agent": TEXTS, "kind": TEXTS, "status": pa.int16(), "cache": TEXTS}
KEY |= {"ms_below": pa.int64()}
ASKED = pa.schema({"ts_us": pa.int64(), **{name: KEY[name] for name in KEY if name != "date"}, "bytes": pa.int64()})
"""Schema of requests, one a row. Values that are not logged are null."""
COUNTED = pa.schema({**KEY, **dict.fromkeys(("requests", "sized", "bytes", "first_us", "last_us"), pa.int64())})
"""Schema of counted requests. `sized` is the number of requests with bytes; times are microseconds since 1970."""
NONE = COUNTED.empty_table()
SUMS = {"requests": "sum", "sized": "sum", "bytes": "sum", "first_us": "min", "last_us": "max"}
_HITS = frozenset("hit stale revalidated updating refreshhit prerender".split())
_NO_CACHE = frozenset({"", "-", "none", "unknown"})


def cache_of(state: str) -> str | None:
    """Return hit or miss for the state that a cache logs, in any case; None if there was no cache."""
    return None if (lower := state.lower()) in _NO_CACHE else "hit" if lower in _HITS else "miss"


def ms_below(ms: float | None) -> int | None:
    """Return the bound of MS_BELOW above a time."""
    return None if ms is None or ms < 0 else MS_BELOW[min(bisect_right(MS_BELOW, ms), len(MS_BELOW) - 1)]


def asked_table(requests: Sequence[Request]) -> pa.Table:
    """Return requests as a table of ASKED."""
    columns = {
        "ts_us": [each.ts_us for each in requests],
        "user_agent": [each.user_agent for each in requests],
        "kind": [kind_of(each) for each in requests],
        "status": [each.status if 0 <= each.status < 1_000 else 0 for each in requests],
        "cache": [cache_of(each.cache) for each in requests],
        "ms_below": [ms_below(each.ms) for each in requests],
        "bytes": [each.bytes for each in requests],
    }
    return pa.table({field.name: pa.array(columns[field.name]).cast(field.type) for field in ASKED})


def count(asked: pa.Table) -> pa.Table:
    """Return requests (ASKED) as counts (COUNTED)."""
    ts_us = asked["ts_us"]
    columns = {
        **{name: asked[name] for name in ASKED.names},
        "date": ts_us.cast(TIMESTAMP).cast(pa.date32()),
        "requests": np.ones(asked.num_rows, np.int64),
        "sized": asked["bytes"].is_valid().cast(pa.int64()),
        "bytes": pc.fill_null(asked["bytes"], 0),
        "first_us": ts_us,
        "last_us": ts_us,
    }
    return grouped(pa.table({name: columns[name] for name in COUNTED.names}), [*KEY], SUMS).cast(COUNTED)


def grouped(table: pa.Table, key: list[str], sums: dict[str, str]) -> pa.Table:
    """Return a row for each key, with the aggregates of the other columns."""
    unified = table.unify_dictionaries().combine_chunks()
    if not len(unified):
        return table.select([*key, *sums])
    logged = [name for name in key if unified[name].null_count < len(unified)]  # most formats have no cache and no time
    sums_of = unified.group_by(logged, use_threads=False).aggregate([*sums.items()])
    columns = {name: sums_of[name] for name in logged} | {name: sums_of[f"{name}_{how}"] for name, how in sums.items()}
    nulls = {name: pa.nulls(len(sums_of), unified.schema.field(name).type) for name in key if name not in logged}
    return pa.table({name: {**columns, **nulls}[name] for name in (*key, *sums)})
