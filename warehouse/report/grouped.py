"""Reports that count by any grouping: breakdowns, series and the coverage of the sources.

Counts of files are cached until the files change, and ranked breakdowns until a hit arrives.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.control.policy import Periods
from warehouse.query import edge_rows
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import FIRST, TimeRange, round_to_days
from warehouse.report import breakdown, hit_counts, source_coverage
from warehouse.report.audience.agents import AGENT_DAYS
from warehouse.report.by_path.from_hits import FromHits
from warehouse.report.filters import Filters, Query
from warehouse.report.grouping import BREAKDOWNS, DAY_S, SOURCE_DAYS, TIME_UNITS, Grouping
from warehouse.report.hit_counts import Scope
from warehouse.report.path_reports import PathReports
from warehouse.report.series import count_days, series, unit_s
from warehouse.report.source_coverage import SourceCoverage
from warehouse.report.sources import days as source_days
from warehouse.report.sources import silence
from warehouse.report.sources.measured import Measured, of_kinds
from warehouse.report.time_buckets import Bucket, buckets
from warehouse.rollups.coverage import Coverage

UTC_ZONE = ZoneInfo("UTC")
_MICROSECOND = timedelta(microseconds=1)


class GroupedReports:
    """Breakdowns, series and source coverage of one process. Safe to call from several threads."""

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        cached: ResultCache,
        coverage: Callable[[HitsSnapshot], Coverage],
        by_path: PathReports,
        from_hits: FromHits,
    ) -> None:
        """Create the reports. `coverage` returns the rollups that cover the files of a snapshot.

        Series of paths are added up from the blocks of `by_path`, or counted by `from_hits` if they are too large.
        """
        self._database, self._cached, self._coverage = database, cached, coverage
        self._by_path, self._from_hits = by_path, from_hits

    def read_edges(self, snapshot: HitsSnapshot, scopes: Sequence[Scope]) -> None:
        """Read the hits at the edges of several ranges of a project into the cache: see `edge_rows.read_together`."""
        edges = {edge.time_range for scope in scopes for edge in round_to_days(scope.time_range).edges}
        edge_rows.read_together(self._database, self._cached, snapshot.files, scopes[0].project, edges)

    def breakdown(self, snapshot: HitsSnapshot, scope: Scope, by: str) -> pa.Table:
        """Return the ranked rows of a breakdown by a key of BREAKDOWNS: see `breakdown.rank`."""
        return self._cached(
            (scope, by, snapshot.rows_key),
            lambda: breakdown.rank(self.counts(snapshot, scope, BREAKDOWNS[by])),
            evict_first=True,
        )

    def series(self, snapshot: HitsSnapshot, query: Query, scope: Scope, interval: str, zone: ZoneInfo) -> pa.Table:
        """Return the rows of a series. `scope` describes the hits that the query counts.

        A query from FIRST begins at the first hit of the project, and one without an end ends with the bucket of `now`.

        Raises:
            TooManyBuckets: see `time_buckets.buckets`.
        """
        parts = self._buckets(snapshot, query, interval, zone)
        counts = self.counts(snapshot, scope, TIME_UNITS[unit_s(parts)])
        return series(parts, counts)

    def series_by_purpose(
        self, snapshot: HitsSnapshot, query: Query, scope: Scope, interval: str
    ) -> dict[str, pa.Table]:
        """Return the rows of a series of each purpose of AI agents that has a view, by UTC days, weeks or months.

        The series are added up from the counts of the list of agents. To count each purpose by itself takes 2 ms.

        Raises:
            TooManyBuckets: see `time_buckets.buckets`.
        """
        assert interval != "hour", "the list of agents is by day"
        parts = self._buckets(snapshot, query, interval, UTC_ZONE)
        counts = self.counts(snapshot, scope, AGENT_DAYS)
        purposes, days = (pc.struct_field(counts["value"], name) for name in ("purpose", "day"))
        by_day = counts.set_column(0, "value", days)
        names = (name for name in purposes.unique().to_pylist() if name is not None)
        return {name: series(parts, by_day.filter(pc.equal(purposes, name))) for name in names}

    def _buckets(self, snapshot: HitsSnapshot, query: Query, interval: str, zone: ZoneInfo) -> list[Bucket]:
        start = self._first_hit(snapshot, query.project) if query.start == FIRST else query.start
        end = query.now + _MICROSECOND if query.end is None else query.end
        return buckets(TimeRange(start, end), interval, zone) if start else []

    def source_coverage(self, snapshot: HitsSnapshot, project: str, policy: Periods = ()) -> SourceCoverage:
        """Return the coverage of the sources of a project at the moment of the snapshot. `policy` is the project's."""
        scope = Scope(project, TimeRange(), Filters())
        under_policy = replace(scope, filters=Filters(policy=policy))
        return source_coverage.summarize(
            self.counts(snapshot, scope, SOURCE_DAYS),
            self._first_and_last(snapshot, project),
            _taken(snapshot),
            policy,
            self.counts(snapshot, under_policy, SOURCE_DAYS) if policy else None,
        )

    def measured(self, snapshot: HitsSnapshot, query: Query, policy: Periods) -> Measured:
        """Return when each kind of readers was counted by the sources that a query selects. Its range is not used."""
        now, project, source = _taken(snapshot), query.project, query.filters.source
        key = project, "source days", snapshot.rows_key
        rows = self._cached(key, lambda: self._source_days(snapshot, project), evict_first=True).to_pylist()
        spans = {row["source"]: tuple(silence.spans(row["days"], row["first"], row["last"], now)) for row in rows}
        chosen = spans if source is None else {source: spans.get(source, ())}
        return Measured(of_kinds(chosen, policy), min((row["first"] for row in rows), default=None), now)

    def _source_days(self, snapshot: HitsSnapshot, project: str) -> pa.Table:
        in_files = self._count_files(snapshot, Scope(project, TimeRange(), Filters()), SOURCE_DAYS)
        days = self._cached((project, "source days", snapshot.files_key), lambda: source_days.in_files(in_files))
        return source_days.union(
            days, source_days.in_rows(snapshot.hot, project), self._first_and_last(snapshot, project)
        )

    def _first_and_last(self, snapshot: HitsSnapshot, project: str) -> pa.Table:
        """Return the times of the first and last hit of each source, in files and in hot rows."""
        in_files = self._count_files(snapshot, Scope(project, TimeRange(), Filters()), SOURCE_DAYS)
        first_and_last = self._cached(
            (project, "first and last", snapshot.files_key),
            lambda: source_coverage.first_and_last_in_files(self._database, snapshot.files, project, in_files),
        )
        return pa.concat_tables([first_and_last, source_coverage.first_and_last_in_rows(snapshot.hot, project)])

    def _first_hit(self, snapshot: HitsSnapshot, project: str) -> datetime | None:
        return min((source.first_hit for source in self.source_coverage(snapshot, project).sources), default=None)

    def counts(self, snapshot: HitsSnapshot, scope: Scope, grouping: Grouping) -> pa.Table:
        """Return counts by a grouping: value, human, ai and bot. A value may have several rows, which add up."""
        return self._with_hot(self._count_files(snapshot, scope, grouping), snapshot, scope, grouping)

    def _count_files(self, snapshot: HitsSnapshot, scope: Scope, grouping: Grouping) -> pa.Table:
        is_by_day = grouping is TIME_UNITS[DAY_S] and scope.filters.path is not None
        count = self._count_days_of_paths if is_by_day else self._count_stored
        if scope.filters.needs_page_views and self._by_path.is_large(snapshot, scope.project):
            count = self._from_hits.counts
        key = scope, grouping, snapshot.files_key
        return self._cached(key, lambda: count(snapshot, scope, grouping), evict_first=True)

    def _count_stored(self, snapshot: HitsSnapshot, scope: Scope, grouping: Grouping) -> pa.Table:
        coverage, files = self._coverage(snapshot), snapshot.files
        has_dimension = grouping.dimension_for(scope.filters) is not None
        if scope.filters.path is None and not (has_dimension and scope.filters.needs_page_views):
            return hit_counts.count_files(self._database, self._cached, files, coverage, scope, grouping)
        if not has_dimension:
            days = self._by_path.viewed_days(coverage, scope)
            return hit_counts.count_paths(self._database, self._cached, files, days, scope, grouping)
        block, _ = self._by_path.block(coverage, scope.project)
        return hit_counts.count_files(self._database, self._cached, files, coverage, scope, grouping, block)

    def _count_days_of_paths(self, snapshot: HitsSnapshot, scope: Scope, grouping: Grouping) -> pa.Table:
        coverage = self._coverage(snapshot)
        days = count_days(self._by_path, coverage, scope)
        if days is None:
            return self._count_stored(snapshot, scope, grouping)
        others = hit_counts.count_uncovered(self._database, self._cached, snapshot.files, coverage, scope, grouping)
        return pa.concat_tables([days, others])

    def _with_hot(self, in_files: pa.Table, snapshot: HitsSnapshot, scope: Scope, grouping: Grouping) -> pa.Table:
        """Return the counts in files with those of the hot rows appended."""
        if not _may_have_hot(snapshot, scope):  # a query takes 3 ms, even without rows
            return in_files
        return pa.concat_tables([in_files, hit_counts.count_rows(self._database, snapshot.hot, scope, grouping)])


def _taken(snapshot: HitsSnapshot) -> datetime:
    return datetime.fromtimestamp(snapshot.moment.taken_us / 1_000_000, UTC)


def _may_have_hot(snapshot: HitsSnapshot, scope: Scope) -> bool:
    """Return whether the time range of a scope may contain a hot row."""
    times = pc.min_max(snapshot.hot["ts"])
    first, last = times["min"].as_py(), times["max"].as_py()
    return first is not None and first < scope.time_range.end and last >= scope.time_range.start
