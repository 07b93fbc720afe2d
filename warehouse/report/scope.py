"""Scope of a query: the range that it counts, under the source policy of its project."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters
from warehouse.control.policy import Periods
from warehouse.lake import row_groups
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.cells import Scope
from warehouse.report.results import Query
from warehouse.report.statements import Statements, without_waiting

_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)


def scope_of(statements: Statements, snapshot: Snapshot, query: Query, policy: Periods) -> Scope:
    """Return the scope of a query. `policy` is the project's.

    A range without an end ends at LAST, a constant with which results are cached; or at `now`, if the project has hits
    of a later time, from a fast clock.
    """
    end = query.end
    if end is None:
        end = query.now if _has_later(statements, snapshot, query.project, query.now) else LAST
    return Scope(query.project, TimeRange(query.start, end), query.filters.but(policy=policy))


def last_days(scope: Scope, now: datetime, days: int) -> Scope:
    """Return the scope in the last UTC days of its range, for reports that take too long over a longer one.

    The last day is the day of `now`, or an earlier one.
    """
    start, end = scope.time_range.start, scope.time_range.end
    last = min(max(end, FIRST + _DAY) - _MICROSECOND, now).date()
    first = datetime.combine(last, time(tzinfo=UTC)) - min(days - 1, (last - FIRST.date()).days) * _DAY
    return replace(scope, time_range=TimeRange(max(start, first), end))


def _has_later(statements: Statements, snapshot: Snapshot, project: str, now: datetime) -> bool:
    """Return whether a project has a hit at or after `now`."""
    today = now.date().isoformat()
    latest = (row_groups.latest(file.path) for file in snapshot.files if file.partition >= today)
    if any(each is None or each >= now for each in latest):
        later = Scope(project, TimeRange(now, LAST), Filters())
        if statements.counts(without_waiting(snapshot), later, "source").num_rows:
            return True
    return _is_hot_ahead(snapshot.hot, project, now)


def _is_hot_ahead(hot: pa.Table, project: str, now: datetime) -> bool:
    latest = pc.max(hot["ts"]).as_py()
    if latest is None or latest < now:
        return False
    return bool(hot.filter((pc.field("project_id") == project) & (pc.field("ts") >= now)).num_rows)
