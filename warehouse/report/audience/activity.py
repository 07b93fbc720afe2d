"""Activity of several projects: the views of their last days, and the time of their last hit.

All projects are read by the same few queries: a list of 1,000 projects does not take 1,000 queries.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import duckdb
import pyarrow as pa

from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import engine
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.report import hit_counts
from warehouse.report.hit_counts import RollupDays
from warehouse.rollups.coverage import Coverage

DAYS = 30
"""Number of UTC days of a sparkline."""
Values = dict[str, object]
"""Values that a query binds, by name."""
_DAY = timedelta(days=1)
_OF_PROJECTS = "project_id IN (SELECT unnest($projects::VARCHAR[]))"
_COUNT = f"""
SELECT project_id, {{day}} AS day, coalesce({{count}} FILTER (traffic = 'human'), 0)::BIGINT AS human,
       coalesce({{count}} FILTER (traffic = 'ai'), 0)::BIGINT AS ai
FROM {{rows}}
WHERE {_OF_PROJECTS} AND {{day}} BETWEEN $first AND $last
GROUP BY 1, 2
"""
_LAST_DAY = f"SELECT DISTINCT max(date) AS day FROM {{rows}} WHERE {_OF_PROJECTS} GROUP BY project_id"
_LAST_HIT = f"SELECT project_id, max(ts) AS last_hit FROM {{rows}} WHERE {_OF_PROJECTS} GROUP BY project_id"


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Views of a project by people and by AI on UTC days, which are in order and without gaps."""

    days: tuple[date, ...]
    human: tuple[int, ...]
    ai: tuple[int, ...]


class Activity:
    """Activity of the projects of one process. Safe to call from several threads.

    The results of files are cached until the files change.
    """

    def __init__(
        self, database: duckdb.DuckDBPyConnection, cached: ResultCache, coverage: Callable[[HitsSnapshot], Coverage]
    ) -> None:
        """Create the reports. `coverage` returns the rollups that cover the files of a snapshot."""
        self._database, self._cached, self._coverage = database, cached, coverage

    def sparklines(self, snapshot: HitsSnapshot, projects: Collection[str], now: datetime) -> dict[str, Sparkline]:
        """Return the views of each project on the last DAYS days, of which the last is the UTC day of `now`."""
        last = now.astimezone(UTC).date()
        days = tuple(last - number * _DAY for number in reversed(range(DAYS)))
        listed = tuple(sorted(projects))
        values: Values = {"projects": list(listed), "first": days[0], "last": last}
        in_files = self._cached(
            ("sparklines", listed, last, snapshot.files_key), lambda: self._count_files(snapshot, values)
        )
        counts = pa.concat_tables([in_files, self._read_hot(_count_hits("hot", "ts::DATE"), snapshot.hot, values)])
        views = dict.fromkeys(((project, day) for project in listed for day in days), (0, 0))
        for project, day, human, ai in zip(*(column.to_pylist() for column in counts.columns), strict=True):
            before = views[project, day]
            views[project, day] = before[0] + human, before[1] + ai
        return {project: _sparkline(days, [views[project, day] for day in days]) for project in listed}

    def last_hits(self, snapshot: HitsSnapshot, projects: Collection[str]) -> dict[str, datetime | None]:
        """Return the time of the last hit of each project; None without a hit."""
        listed = tuple(sorted(projects))
        values: Values = {"projects": list(listed)}
        in_files = self._cached(
            ("last hits", listed, snapshot.files_key), lambda: self._last_in_files(snapshot, listed, values)
        )
        latest: dict[str, datetime | None] = dict.fromkeys(listed)
        for rows in (in_files, self._read_hot(_LAST_HIT.format(rows="hot"), snapshot.hot, values)):
            for project, last_hit in zip(rows["project_id"].to_pylist(), rows["last_hit"].to_pylist(), strict=True):
                latest[project] = max(last_hit, latest[project] or last_hit)
        return latest

    def _count_files(self, snapshot: HitsSnapshot, values: Values) -> pa.Table:
        coverage, first, last = self._coverage(snapshot), values["first"], values["last"]
        assert isinstance(first, date)
        assert isinstance(last, date)
        in_rollups = hit_counts.valid_days(coverage, TimeRange(_midnight(first), _midnight(last + _DAY)))
        files = [file for file in coverage.uncovered if first.isoformat() <= file.partition <= last.isoformat()]
        counted = [self._read(_count_hits(_rows(files), "date"), values)]
        if in_rollups:
            rows = hit_counts.rollup_rows_sql(in_rollups)
            sql = _COUNT.format(day="date", count="sum(views)", rows=rows)
            counted.append(self._read(sql, values | {"dimension": "total"}))
        return pa.concat_tables(counted)

    def _last_in_files(self, snapshot: HitsSnapshot, projects: tuple[str, ...], values: Values) -> pa.Table:
        """Read the uncovered files, and those of the last day of each project in rollups."""
        coverage = self._coverage(snapshot)
        days: set[str] = set()
        if in_rollups := hit_counts.valid_days(coverage, TimeRange()):
            read = self._cached(("last days", projects, in_rollups), lambda: self._last_days(in_rollups, values))
            days = {day.isoformat() for day in read["day"].to_pylist()}
        files = [*coverage.uncovered, *(file for file in snapshot.files if file.partition in days)]
        return self._read(_LAST_HIT.format(rows=_rows(files)), values)

    def _last_days(self, rollups: Sequence[RollupDays], values: Values) -> pa.Table:
        sql = _LAST_DAY.format(rows=hit_counts.rollup_rows_sql(rollups))
        return self._read(sql, values | {"dimension": "total"})

    def _read(self, sql: str, values: Values) -> pa.Table:
        with engine.interruptible_cursor(self._database) as cursor:
            return cursor.sql(sql, params=values).to_arrow_table()

    def _read_hot(self, sql: str, hot: pa.Table, values: Values) -> pa.Table:
        with engine.interruptible_cursor(self._database) as cursor:
            cursor.register("hot", hot)
            return cursor.sql(sql, params=values).to_arrow_table()


def time_range(days: Sequence[date]) -> TimeRange:
    """Return the time range of days in order and without gaps."""
    return TimeRange(_midnight(days[0]), _midnight(days[-1] + _DAY))


def of_days(days: tuple[date, ...], counts: pa.Table) -> Sparkline:
    """Return the sparkline of counts by `grouping.TIME_UNITS` of a day."""
    views = dict.fromkeys(days, (0, 0))
    for number, human, ai in zip(*(counts[name].to_pylist() for name in ("value", "human", "ai")), strict=True):
        before = views[day := date.fromordinal(number + 1)]
        views[day] = before[0] + human, before[1] + ai
    return _sparkline(days, [*views.values()])


def _count_hits(rows: str, day: str) -> str:
    return _COUNT.format(day=day, count="count(*)", rows=rows)


def _rows(files: Sequence[File]) -> str:
    return engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)


def _sparkline(days: tuple[date, ...], views: Sequence[tuple[int, int]]) -> Sparkline:
    return Sparkline(days, tuple(human for human, _ in views), tuple(ai for _, ai in views))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(tzinfo=UTC))
