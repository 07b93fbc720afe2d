"""End of a time range that a request leaves open: `now` if the project has hits of a later time, from a fast clock."""

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters
from warehouse.lake import row_groups
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import LAST, TimeRange
from warehouse.report.cells import Scope
from warehouse.report.statements import Statements, without_waiting


def find(statements: Statements, snapshot: Snapshot, project: str, now: datetime) -> datetime:
    """Return `now` if the project has a hit at or after `now`; else LAST, a constant with which results are cached."""
    today = now.date().isoformat()
    latest = (row_groups.latest(file.path) for file in snapshot.files if file.partition >= today)
    if any(each is None or each >= now for each in latest):
        later = Scope(project, TimeRange(now, LAST), Filters())
        if statements.counts(without_waiting(snapshot), later).num_rows:
            return now
    return now if _is_hot_ahead(snapshot.hot, project, now) else LAST


def _is_hot_ahead(hot: pa.Table, project: str, now: datetime) -> bool:
    latest = pc.max(hot["ts"]).as_py()
    if latest is None or latest < now:
        return False
    return bool(hot.filter((pc.field("project_id") == project) & (pc.field("ts") >= now)).num_rows)
