"""Unmeasured counts of a report: a 0 for readers that no source counted is unknown, and becomes null."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from api.reports.documents import Counts, Measured
from warehouse.columns.sources import TRAFFIC
from warehouse.report import measured, results
from warehouse.report.results import Query
from warehouse.report.time_buckets import instant

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
Hidden = Mapping[str, Sequence[bool]]
"""Columns of counts, and for each row or for all of them whether nothing was measured."""


def of(known: measured.Measured, query: Query) -> Measured:
    """Return how much of the range of a query was measured."""
    return Measured(*(known.extent(kind, query.start, query.end) for kind in TRAFFIC))


def hidden(known: measured.Measured, query: Query, starts: Sequence[datetime] | None = None) -> Hidden:
    """Return what was not measured in the range of a query, or in each of the intervals that begin at `starts`.

    Readers whom the filter by traffic leaves out are no part of the answer: their counts stay 0.
    """
    begins = [query.start] if starts is None else [max(start, query.start) for start in starts]
    ranges = list(zip(begins, [*begins[1:], query.end], strict=True))
    columns = {
        kind: [known.extent(kind, *each) == "none" for each in ranges]
        for kind in query.filters.selected_traffic
        if known.extent(kind, query.start, query.end) != "all"
    }
    in_total = [kind for kind in query.filters.selected_traffic if kind != "bot"]
    if in_total and columns.keys() >= set(in_total):
        columns["total"] = list(map(all, zip(*map(columns.__getitem__, in_total), strict=True)))
    return columns


def totals(counts: results.Counts, unmeasured: Hidden, **more: Any) -> Counts:
    """Return the totals of a range, with null in place of a 0 that was not measured, and with `more` fields."""
    for name in (*TRAFFIC, "total"):
        more[name] = getattr(counts, name) or (None if any(unmeasured.get(name, ())) else 0)
    return Counts(**more)


def hide(rows: Rows, unmeasured: Hidden) -> Rows:
    """Return rows with null in place of each 0 that was not measured."""
    for name, flags in unmeasured.items():
        if any(flags):
            mask = pa.array(flags) if len(flags) > 1 else pa.scalar(value=True)
            counts = pc.if_else(pc.and_(pc.equal(rows[name], 0), mask), None, rows[name])
            rows = rows.set_column(rows.schema.get_field_index(name), name, counts)
    return rows


def hidden_intervals(rows: pa.Table, known: measured.Measured, query: Query, zone: ZoneInfo) -> Hidden:
    """Return what was not measured in each row of a series."""
    starts = [instant(start, zone) for start in rows["start"].to_pylist()]
    return hidden(known, query, starts) if starts else {}
