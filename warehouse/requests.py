"""Rows of `requests` that follow from waiting hits: the requests of servers, and the errors of AI agents and bots.

An error is a hit of an AI agent or bot with a status from 400 to 599; all other hits are page views. A person's hit is
a page view whatever its status is: the person saw a page, even if that page reports that another one is missing. Errors
wait in the same batches as page views, and one load stores both. The import of a log counts an error among its other
requests, too: here it counts 1 error and 0 requests.

Scanners ask for any number of random paths, without a name, with the name of a library such as python-requests, or with
the name of a known agent. Errors have no paths of unnamed bots, of HTTP libraries and of spoofed agents.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.kinds import kind_of
from warehouse.columns.sources import MARKDOWN
from warehouse.schema import REQUESTS

ERRORS = range(400, 600)
"""HTTP statuses of errors."""
SCANNERS = "^bot:(?:spoofed|http-library):"
"""Regular expression of the rules of spoofed agents and of HTTP libraries, whose paths are not stored."""
MS_BELOW = tuple(step * 10**power for power in range(6) for step in (1, 2, 5))
"""Upper bounds of the times by which requests are counted, in milliseconds. A longer time counts with the last one."""


def ms_below(ms: float | None) -> int | None:
    """Return the bound of MS_BELOW above a time."""
    return None if ms is None or ms < 0 else MS_BELOW[min(bisect_right(MS_BELOW, ms), len(MS_BELOW) - 1)]


def split(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the page views, and the rows of `requests` with counts of 1 and with the `batch_id` of hot rows.

    A server's hit without a status is no request.
    """
    status = rows["status"]
    is_failed = pc.and_(pc.greater_equal(status, ERRORS.start), pc.less(status, ERRORS.stop))
    is_error = pc.fill_null(pc.and_(is_failed, pc.not_equal(rows["traffic"].cast(pa.string()), "human")), False)  # noqa: FBT003  # Arrow's argument
    is_served = pc.and_(pc.equal(rows["source"].cast(pa.string()), "server"), status.is_valid())
    chosen = pc.or_(is_error, is_served)
    asked = _requests(rows.filter(chosen), is_error.filter(chosen), is_served.filter(chosen))
    views = rows.num_rows - (pc.sum(is_error).as_py() or 0)
    are_last = pc.all(is_error.slice(views), min_count=0).as_py()  # as in the rows of an import
    return rows.slice(0, views) if are_last else rows.filter(pc.invert(is_error)), asked


def _requests(rows: pa.Table, is_error: pa.ChunkedArray, is_served: pa.ChunkedArray) -> pa.Table:
    path, date = rows["path"].cast(pa.string()), rows["ts"].cast(pa.date32())
    is_scanner = pc.match_substring_regex(rows["rule"].cast(pa.string()), SCANNERS)
    has_path = pc.and_(is_error, pc.and_(rows["agent"].is_valid(), pc.invert(is_scanner)))
    is_markdown = pc.is_in(rows["format"].cast(pa.string()), value_set=pa.array(MARKDOWN))
    columns = {name: rows[name] for name in rows.column_names} | {
        "month": _mapped(lambda day: f"{day:%Y-%m}", date),
        "date": date,
        "kind": pc.if_else(is_markdown, "markdown", _mapped(kind_of, path)),
        "ms_below": _mapped(ms_below, rows["duration_ms"]),
        "requests": is_served,
        "sized": pc.and_(is_served, rows["bytes"].is_valid()),
        "bytes": pc.fill_null(rows["bytes"], 0),
        "first_seen": rows["ts"],
        "last_seen": rows["ts"],
        "path": pc.if_else(has_path, path, pa.scalar(None, pa.string())),
        "errors": is_error,
    }
    schema = pa.schema([*REQUESTS, *(rows.schema.field(name) for name in ("batch_id",) if name in columns)])
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def _mapped(function: Callable[[Any], object], column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the result of a function for each value, called once for each distinct one."""
    distinct = pc.unique(column)
    return pa.array(map(function, distinct.to_pylist())).take(pc.index_in(column, value_set=distinct))
