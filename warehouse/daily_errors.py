"""The table `daily_errors`: which rows of the hot log are errors, and how each is counted.

An error is a hot row of an AI agent or bot with a status from 400 to 599; all other hot rows are page views. A person's
row is a page view whatever its status is: the person saw a page, even if that page reports that another one is missing.
Errors wait in the same batches as page views, and one load stores both.

Scanners ask for any number of random paths, without a name, with the name of a library such as python-requests, or with
the name of a known agent. `counts` omits the paths of unnamed bots, of HTTP libraries and of spoofed agents: each
of these has one row a day for each status.
"""

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.schema import DAILY_ERRORS

HOT_COLUMNS = ("project_id", "ts", "path", "traffic", "agent", "rule", "status")
"""Columns of hot rows from which errors are counted."""
ERRORS = range(400, 600)
"""HTTP statuses of errors."""
SCANNERS = "^bot:(?:spoofed|http-library):"
"""Regular expression of the rules of spoofed agents and of HTTP libraries, whose paths are not stored."""


def split(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the page views and the errors among hot rows, which have at least the columns `status` and `traffic`."""
    status = rows["status"]
    is_failed = pc.and_(pc.greater_equal(status, ERRORS.start), pc.less(status, ERRORS.stop))
    if not pc.any(is_failed).as_py():
        return rows, rows.slice(0, 0)
    is_error = pc.fill_null(pc.and_(is_failed, pc.not_equal(rows["traffic"].cast(pa.string()), "human")), False)  # noqa: FBT003  # Arrow's argument
    views = rows.num_rows - pc.sum(is_error).as_py()
    are_last = pc.all(is_error.slice(views)).as_py()  # as in the rows of an import
    return rows.slice(0, views) if are_last else rows.filter(pc.invert(is_error)), rows.filter(is_error)


def counts(rows: pa.Table) -> pa.Table:
    """Return errors, with at least HOT_COLUMNS, as rows of `daily_errors` with a count of 1."""
    is_scanner = pc.match_substring_regex(rows["rule"].cast(pa.string()), SCANNERS)
    is_named = pc.and_(rows["agent"].is_valid(), pc.invert(is_scanner))
    date, ts = rows["ts"].cast(pa.date32()), rows["ts"]
    counts = {
        "month": pc.strftime(date, format="%Y-%m"),
        "date": date,
        "path": pc.if_else(is_named, rows["path"].cast(pa.string()), pa.scalar(None, pa.string())),
        "requests": pa.repeat(1, rows.num_rows),
        "first_seen": ts,
        "last_seen": ts,
    }
    return pa.table({name: counts[name] if name in counts else rows[name] for name in DAILY_ERRORS.names})
