"""Activity of several projects: the views of their last days, and the time of their last hit.

All projects are read by the same few statements: a list of 1,000 projects does not take 1,000.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa

from warehouse.columns.evidence import NOT_MEASURED
from warehouse.columns.filters import Filters
from warehouse.control.policy import Periods
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange
from warehouse.report import cells
from warehouse.report.cells import Scope
from warehouse.report.measured import midnight
from warehouse.report.statements import VIEWS, Statements, without_waiting
from warehouse.tables import HITS_TABLE

DAYS = 30
"""Number of UTC days of a sparkline."""
_DAY = timedelta(days=1)
_LAST_HIT = """
SELECT project_id, max(ts) AS last_hit FROM {rows} WHERE project_id IN (SELECT unnest($projects::VARCHAR[])) GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Views of a project by people and by AI on UTC days, which are in order and without gaps."""

    days: tuple[date, ...]
    human: tuple[int, ...]
    ai: tuple[int, ...]


def sparklines(
    statements: Statements,
    snapshot: Snapshot,
    projects: Collection[str],
    now: datetime,
    policy_of: Callable[[str], Periods],
) -> dict[str, Sparkline]:
    """Return the views of each project on the last DAYS days, of which the last is the UTC day of `now`.

    A project whose source policy leaves out some hits is counted alone.
    """
    last = now.astimezone(UTC).date()
    days = tuple(last - number * _DAY for number in reversed(range(DAYS)))
    listed = tuple(sorted(projects))
    scope = Scope(listed, time_range(days), Filters())

    def fetch() -> pa.Table:
        chosen = cells.select(snapshot, statements.rollups(snapshot), scope, ("project_id", "day", "traffic"))
        sql = f"SELECT project_id, day, {VIEWS} FROM {chosen.sql} GROUP BY project_id, day"
        return statements.fetch(snapshot, scope, chosen, sql)

    views = dict.fromkeys(((project, day) for project in listed for day in days), (0, 0))
    rows = statements.cached(("sparklines", scope, snapshot.rows_key), fetch)
    for project, day, human, ai, _ in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        views[project, day] = human, ai
    for project in listed:
        if policy := policy_of(project):
            counts = statements.counts(snapshot, Scope(project, scope.time_range, Filters(policy)), "day")
            views |= dict.fromkeys(((project, day) for day in days), (0, 0))
            for day, human, ai in zip(*(counts[name].to_pylist() for name in ("day", "human", "ai")), strict=True):
                views[project, day] = human, ai
    return {
        project: Sparkline(days, *(tuple(views[project, day][number] for day in days) for number in (0, 1)))
        for project in listed
    }


def first_day(statements: Statements, snapshot: Snapshot, project: str, dimension: str) -> date | None:
    """Return the first UTC day with a known value of a dimension: see `Reports.first_day`."""
    scope = Scope(project, TimeRange(), Filters())

    def read() -> pa.Table:
        chosen = cells.select(snapshot, statements.rollups(snapshot), scope, (dimension, "day"))
        sql = f"SELECT min(day) AS day FROM {chosen.sql} WHERE {dimension} <> '{NOT_MEASURED}'"
        return statements.fetch(snapshot, scope, chosen, sql)

    first: date | None = statements.cached(("first day", project, dimension, snapshot.rows_key), read)["day"][0].as_py()
    return first


def last_hits(statements: Statements, snapshot: Snapshot, projects: Collection[str]) -> dict[str, datetime | None]:
    """Return the time of the last hit of each project; None without a hit."""
    scope = Scope(tuple(sorted(projects)), TimeRange(), Filters())
    stored = without_waiting(snapshot)
    in_files = statements.cached(("last hits", scope, stored.rows_key), lambda: _in_files(statements, stored, scope))
    latest: dict[str, datetime | None] = dict.fromkeys(scope.project)
    for rows in (in_files, snapshot.hot.group_by("project_id").aggregate([("ts", "max")])):
        for project, last_hit in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            if project in latest:
                latest[project] = max(last_hit, latest[project] or last_hit)
    return latest


def _in_files(statements: Statements, snapshot: Snapshot, scope: Scope) -> pa.Table:
    """Read the files of the last day of each project."""
    chosen = cells.select(snapshot, statements.rollups(snapshot), scope, ("project_id", "day"))
    sql = f"SELECT DISTINCT max(day) FROM {chosen.sql} GROUP BY project_id"
    days = {day.isoformat() for day in statements.fetch(snapshot, scope, chosen, sql).columns[0].to_pylist()}
    files = [file for file in snapshot.files if file.partition in days]
    rows = engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)
    bound = {"projects": [*scope.project]}
    return statements.fetch(snapshot, scope, cells.Cells("", bound), _LAST_HIT.format(rows=rows))


def time_range(days: Sequence[date]) -> TimeRange:
    """Return the time range of days in order and without gaps."""
    return TimeRange(midnight(days[0].toordinal()), midnight(days[-1].toordinal() + 1))
