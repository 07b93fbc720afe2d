"""The table `daily_errors`: which rows of the hot log are errors, and their daily counts.

An error is a hot row of an AI agent or bot with a status from 400 to 599; all other hot rows are page views. A person's
row is a page view whatever its status is: the person saw a page, even if that page reports that another one is missing.
Errors wait in the same batches as page views, and one load stores both.

Scanners ask for any number of random paths, without a name, with the name of a library such as python-requests, or with
the name of a known agent. `count_errors` omits the paths of unnamed bots, of HTTP libraries and of spoofed agents: each
of these has one row a day for each status.
"""

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.schema import DAILY_ERRORS, DAILY_ERRORS_KEY, DAILY_ERRORS_ORDER

HOT_COLUMNS = ("project_id", "ts", "path", "traffic", "agent", "rule", "status")
"""Columns of hot rows from which errors are counted."""
ERRORS = range(400, 600)
"""HTTP statuses of errors."""
SCANNERS = "^bot:(?:spoofed|http-library):"
"""Regular expression of the rules of spoofed agents and of HTTP libraries, whose paths are not stored."""


def add_up_errors_sql(daily_errors: str) -> str:
    """Return the SELECT that adds up partial counts of errors of the same key."""
    key = ", ".join(DAILY_ERRORS_KEY)
    return (
        f"SELECT {key}, sum(requests)::BIGINT AS requests, min(first_seen) AS first_seen, max(last_seen) AS last_seen "
        f"FROM {daily_errors} GROUP BY {key}"
    )


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


def count_errors(rows: pa.Table) -> pa.Table:
    """Return the counts of errors, as rows of `daily_errors`. `rows` has at least HOT_COLUMNS.

    The counts are sorted by month and, within a month, as in a file of `daily_errors`.
    """
    texts = {name: rows[name].cast(pa.string()) for name in ("project_id", "path", "traffic", "agent", "rule")}
    is_named = pc.and_(texts["agent"].is_valid(), pc.invert(pc.match_substring_regex(texts.pop("rule"), SCANNERS)))
    texts["path"] = pc.if_else(is_named, texts["path"], pa.scalar(None, pa.string()))
    keys = {**texts, "status": rows["status"], "date": rows["ts"].cast(pa.date32())}
    groups = pa.table({**keys, "ts": rows["ts"]}).group_by([*keys])
    counts = groups.aggregate([([], "count_all"), ("ts", "min"), ("ts", "max")])
    counts = counts.rename_columns([*keys, "requests", "first_seen", "last_seen"])
    counts = counts.append_column("month", pc.strftime(counts["date"], format="%Y-%m"))
    counts = counts.sort_by([(column, "ascending") for column in ("month", *DAILY_ERRORS_ORDER)])
    return counts.select(DAILY_ERRORS.names).cast(DAILY_ERRORS)
