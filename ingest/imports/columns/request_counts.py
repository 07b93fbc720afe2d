"""All requests of a log, counted by day, user agent, kind, status, cache and time of the response."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.formats.page_filter import kind_of
from ingest.formats.request import Request
from ingest.hits.hit import cache_of
from ingest.imports.dictionary import TEXTS
from warehouse.requests import ms_below
from warehouse.schema import TIMESTAMP

KEY = {"date": pa.date32(), "user_agent": TEXTS, "kind": TEXTS, "status": pa.int16(), "cache": TEXTS}
KEY |= {"ms_below": pa.int64()}
ASKED = pa.schema({"ts_us": pa.int64(), **{name: KEY[name] for name in KEY if name != "date"}, "bytes": pa.int64()})
"""Schema of requests, one a row. Values that are not logged are null."""
COUNTED = pa.schema({**KEY, **dict.fromkeys(("requests", "sized", "bytes", "first_us", "last_us"), pa.int64())})
"""Schema of counted requests. `sized` is the number of requests with bytes; times are microseconds since 1970."""
NONE = COUNTED.empty_table()
_SUMS = [("requests", "sum"), ("sized", "sum"), ("bytes", "sum"), ("first_us", "min"), ("last_us", "max")]


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
    rows = pa.table({name: columns[name] for name in COUNTED.names}).unify_dictionaries()
    return rows.group_by([*KEY], use_threads=False).aggregate(_SUMS).rename_columns(COUNTED.names).cast(COUNTED)
