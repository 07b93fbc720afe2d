"""All requests of a log, as a table from which they are counted."""

from collections.abc import Sequence

import pyarrow as pa

from ingest.formats.page_filter import kind_of
from ingest.formats.request import Request
from ingest.hits.hit import cache_of
from ingest.imports.dictionary import TEXTS
from warehouse.requests import ms_below

ASKED = pa.schema(
    {
        "ts_us": pa.int64(),
        "user_agent": TEXTS,
        "kind": TEXTS,
        "status": pa.int16(),
        "cache": TEXTS,
        "ms_below": pa.int64(),
        "bytes": pa.int64(),
    }
)
"""Schema of requests, one a row. Values that are not logged are null."""


def asked_table(requests: Sequence[Request]) -> pa.Table:
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
