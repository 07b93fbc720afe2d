"""Reports of one process, all but those of errors: see `warehouse.report.audience.errors`."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa

from warehouse.blocks.listing import Audience, Listing, Order
from warehouse.control.policy import Periods
from warehouse.errors import BatchDamaged, DataIncomplete
from warehouse.lake.roots import Root
from warehouse.query import engine
from warehouse.query.hits_snapshot import HitsReader, HitsSnapshot
from warehouse.query.moment import Moment
from warehouse.query.past_hits import PAST_SHARE
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.report import open_end
from warehouse.report.audience import activity, agent_pages, agents, user_agents, verdicts, visits_sent
from warehouse.report.audience.activity import Activity, Sparkline
from warehouse.report.audience.agent_pages import AgentPages, By
from warehouse.report.audience.agents import AGENT_DAYS
from warehouse.report.audience.first_days import FirstDays
from warehouse.report.audience.last_days import last_days
from warehouse.report.audience.user_agents import USER_AGENTS
from warehouse.report.audience.verdicts import EVIDENCE, STATES, Verdicts
from warehouse.report.by_path.from_hits import FromHits
from warehouse.report.filters import Counts, Filters, Page, Query
from warehouse.report.grouped import GroupedReports
from warehouse.report.grouping import BREAKDOWNS, DAY_S, TIME_UNITS
from warehouse.report.hit_counts import Scope
from warehouse.report.path_reports import PathReports
from warehouse.report.read_ahead import ReadAhead, ReadAheadThread, import_lazy_modules
from warehouse.report.source_coverage import SourceCoverage
from warehouse.report.sources.measured import Measured
from warehouse.rollups import coverage
from warehouse.rollups.coverage import Coverage

PATH = "path"  # a breakdown that is computed like the views report
BATCH_ROWS = 10_000
"""Maximum number of rows in a batch of a complete report."""
BY_TOTAL = Listing(with_bots=True)
"""Listing of a breakdown by path: all paths, most views first."""
_NUMBERS = ("human", "ai", "bot", "total")


class Reports:
    """Reports of one process, with their cache. Safe to call from several threads."""

    def __init__(
        self,
        reader: HitsReader,
        root: Root,
        spill: Path,
        cache_bytes: int,
        policy_of: Callable[[str], Periods] = lambda project: (),
        warnings_of: Callable[[str], Sequence[str]] = lambda project: (),
    ) -> None:
        """Create the reports of the lake in `root`. Large sorts spill into the folder `spill`.

        `policy_of` returns the source policy of a project, and `warnings_of` more warnings for its coverage.
        """
        self._reader, self._root, self._policy_of, self._warnings_of = reader, root, policy_of, warnings_of
        self._database = engine.connect(spill)
        self._cached = ResultCache(cache_bytes)
        reader.cache_in(ResultCache(int(cache_bytes * PAST_SHARE)))
        self._by_path = PathReports(self._database, self._cached, self._coverage)
        self._from_hits = FromHits(spill, self._cached)
        self._grouped = GroupedReports(self._database, self._cached, self._coverage, self._by_path, self._from_hits)
        self._first_days = FirstDays(self._database, self._cached, self._coverage, self._by_path.block)
        self._agent_pages = AgentPages(self._database, self._cached, self._coverage, self._by_path.block)
        self._activity = Activity(self._database, self._cached, self._coverage)
        self._read_ahead = ReadAhead(self._database, self._cached, self._coverage, self._by_path, self._agent_pages)
        self._read_ahead_thread = ReadAheadThread(self.read_ahead)

    def take(self, as_of: Moment | None = None) -> HitsSnapshot:
        """Return the newest snapshot, or that of `as_of`: see `HitsReader.take`."""
        return self._reader.take(as_of)

    def views(
        self,
        snapshot: HitsSnapshot,
        query: Query,
        offset: int,
        limit: int,
        order: Order = "total",
        audience: Audience = "all",
    ) -> Page:
        """Return some paths that people or AI viewed: by default most views first, then by path in byte order.

        `audience` matches the filters.
        """
        return self._page_of_paths(snapshot, query, offset, limit, Listing(order, audience))

    def views_of(self, snapshot: HitsSnapshot, query: Query, paths: Collection[str]) -> dict[str, Counts]:
        """Return the counts of some paths that match the filter by path. Paths without views may be absent."""
        scope = self._scope(snapshot, query)
        rows = self._by_path.some(snapshot, scope, paths)
        if rows is None:
            rows = self._from_hits.some(snapshot, scope, paths)
        return {row[PATH]: Counts(row["human"], row["ai"], row["bot"]) for row in rows.to_pylist()}

    def all_views(
        self, snapshot: HitsSnapshot, query: Query, order: Order = "total", audience: Audience = "all"
    ) -> tuple[Counts, Iterator[pa.RecordBatch]]:
        """Return all paths in the order of `views`, in batches of BATCH_ROWS rows."""
        return self._all_paths(snapshot, query, Listing(order, audience))

    def breakdown(
        self, snapshot: HitsSnapshot, query: Query, by: str, offset: int, limit: int, listing: Listing = BY_TOTAL
    ) -> Page:
        """Return some values of a dimension, those of bots included: most views first, then by value in byte order.

        `by` is `path` or a key of `BREAKDOWNS`. The unknown value, null, is after those with the same total. `listing`
        is used by `path` only.
        """
        if by == PATH:
            page = self._page_of_paths(snapshot, query, offset, limit, listing)
            return replace(page, rows=page.rows.rename_columns({"path": "value"}))
        rows = self._grouped.breakdown(snapshot, self._scope(snapshot, query), by)
        return Page.of(Counts.of(rows), rows, offset, limit)

    def all_breakdown(self, snapshot: HitsSnapshot, query: Query, by: str) -> tuple[Counts, Iterator[pa.RecordBatch]]:
        """Return all values in the order of `breakdown`, in batches of BATCH_ROWS rows."""
        if by == PATH:
            totals, batches = self._all_paths(snapshot, query, BY_TOTAL)
            return totals, (batch.rename_columns(["value", *_NUMBERS]) for batch in batches)
        rows = self._grouped.breakdown(snapshot, self._scope(snapshot, query), by)
        return Counts.of(rows), iter(rows.to_batches(BATCH_ROWS))

    def series(self, snapshot: HitsSnapshot, query: Query, interval: str, zone: ZoneInfo) -> tuple[Counts, pa.Table]:
        """Return the views of each time bucket: start, human, ai, bot and total, with zeros for empty buckets.

        Raises:
            TooManyBuckets: see `time_buckets.buckets`.
        """
        rows = self._grouped.series(snapshot, query, self._scope(snapshot, query), interval, zone)
        return Counts.of(rows), rows

    def read_edges(self, snapshot: HitsSnapshot, *queries: Query) -> None:
        """Read the hits at the edges of the queries of a project: see `GroupedReports.read_edges`."""
        self._grouped.read_edges(snapshot, [self._scope(snapshot, query) for query in queries])

    def series_by_purpose(self, snapshot: HitsSnapshot, query: Query, interval: str) -> dict[str, pa.Table]:
        """Return the series of each purpose of AI agents that has a view: see `GroupedReports.series_by_purpose`."""
        return self._grouped.series_by_purpose(snapshot, query, self._scope(snapshot, query), interval)

    def agents(self, snapshot: HitsSnapshot, query: Query) -> pa.Table:
        """Return the AI agents and other bots: agent, operator, purpose, traffic, views and last_day.

        The order is most views first: see `agents.list_agents`.
        """
        scope = self._scope(snapshot, query)
        return self._cached(
            ("agents", scope, snapshot.rows_key),
            lambda: agents.list_agents(self._grouped.counts(snapshot, scope, AGENT_DAYS)),
            evict_first=True,
        )

    def user_agents(self, snapshot: HitsSnapshot, query: Query, traffic: str | None, limit: int) -> pa.Table:
        """Return the user agents with most views in the last 7 UTC days of the range: user_agent, rule, agent, views.

        `traffic` is human, ai or bot, or None for any. A filter by agent returns the user agents of this agent.
        """
        scope = self._last_days(snapshot, query, user_agents.DAYS)
        return self._cached(
            ("user agents", scope, traffic, limit, snapshot.rows_key),
            lambda: user_agents.rank(
                self._database, self._grouped.counts(snapshot, scope, USER_AGENTS), traffic, limit
            ),
            evict_first=True,
        )

    def verdicts(self, snapshot: HitsSnapshot, query: Query) -> Verdicts:
        """Return the verdicts of the verification on AI agents and other bots: see `Verdicts`."""
        scope, last = self._scope(snapshot, query), self._last_days(snapshot, query, verdicts.DAYS)
        counts = partial(self._grouped.counts, snapshot)
        return self._cached(
            ("verdicts", scope, last, snapshot.rows_key),
            lambda: verdicts.read(counts(scope, STATES), counts(last, EVIDENCE)),
            evict_first=True,
        )

    def agent_pages(self, snapshot: HitsSnapshot, query: Query, by: By = "agent") -> dict[str, int]:
        """Return the number of distinct paths that each AI agent (or operator, or purpose) read.

        They are those of the last 32 UTC days of the range, in which a month of any time zone lies.
        """
        is_large = self._by_path.is_large(snapshot, query.project)
        count = self._from_hits.agent_pages if is_large else self._agent_pages.count
        return count(snapshot, self._last_days(snapshot, query, agent_pages.DAYS), by)

    def visits_sent(
        self, snapshot: HitsSnapshot, query: Query, hosts: Mapping[str, str], campaigns: Mapping[str, str]
    ) -> dict[str, int]:
        """Return the views by people whom AI products sent, by operator: by referrer or campaign, whichever are more.

        `hosts` and `campaigns` have the operators by the hosts of their products and by the values of `utm_source`.
        Filters by traffic, agent, operator, purpose and verification do not apply to people and are ignored.
        """
        scope = self._scope(snapshot, replace(query, filters=visits_sent.without_agents(query.filters)))
        by_host = self._grouped.counts(snapshot, scope, BREAKDOWNS["referrerHost"])
        by_campaign = self._grouped.counts(snapshot, scope, BREAKDOWNS["utmSource"])
        sent = visits_sent.by_operator
        return visits_sent.larger(sent(by_host, hosts), sent(by_campaign, campaigns))

    def first_ai_days(self, snapshot: HitsSnapshot, query: Query, paths: Collection[str]) -> dict[str, date]:
        """Return the UTC day of the first view by AI, in any range, of each path that has one; at most 10,000 paths."""
        if self._by_path.is_large(snapshot, query.project):
            return self._from_hits.first_days(snapshot, Scope(query.project, TimeRange(), Filters()), paths)
        return self._first_days.by_ai(snapshot, query.project, paths)

    def sparklines(self, snapshot: HitsSnapshot, projects: Collection[str], now: datetime) -> dict[str, Sparkline]:
        """Return the views by people and by AI of each project on the last 30 UTC days, today included."""
        drawn = self._activity.sparklines(snapshot, projects, now)
        return {project: self._under_policy(snapshot, project, line) for project, line in drawn.items()}

    def last_hits(self, snapshot: HitsSnapshot, projects: Collection[str]) -> dict[str, datetime | None]:
        """Return the time of the last hit of each project; None without a hit."""
        return self._activity.last_hits(snapshot, projects)

    def source_coverage(self, snapshot: HitsSnapshot, project: str) -> SourceCoverage:
        """Return the first and last hit of each source of a project, its days without a hit, and warnings."""
        result = self._grouped.source_coverage(snapshot, project, self._policy_of(project))
        return replace(result, warnings=(*result.warnings, *self._warnings_of(project)))

    def measured(self, snapshot: HitsSnapshot, query: Query) -> Measured:
        """Return when the sources that a query selects counted each kind of readers."""
        return self._grouped.measured(snapshot, query, self._policy_of(query.project))

    def read_ahead(self) -> Iterator[None]:
        """Read into the cache what the next requests probably need, and yield after each step: see `ReadAhead`.

        Raises:
            DataIncomplete: see `HitsReader.take`.
        """
        return self._read_ahead(self._reader.take)

    def start_read_ahead(self) -> None:
        """Start the thread that reads ahead. `close` ends it."""
        import_lazy_modules()
        self._read_ahead_thread.start()

    def fault(self) -> str | None:
        """Return the reason why reports cannot be computed; None if they can."""
        try:
            self._reader.take()
        except (DataIncomplete, BatchDamaged) as error:
            return str(error)
        return None

    @property
    def warning(self) -> str | None:
        """Return the warning about projects without reports by path, or with slow ones."""
        return self._from_hits.warning(self._by_path.large)

    def close(self) -> None:
        self._read_ahead_thread.close()
        self._from_hits.close()
        self._database.close()
        self._reader.close()

    def _page_of_paths(self, snapshot: HitsSnapshot, query: Query, offset: int, limit: int, listing: Listing) -> Page:
        scope = self._scope(snapshot, query)
        page = self._by_path.page(snapshot, scope, offset, limit, listing)
        return page or self._from_hits.page(snapshot, scope, offset, limit, listing)

    def _all_paths(
        self, snapshot: HitsSnapshot, query: Query, listing: Listing
    ) -> tuple[Counts, Iterator[pa.RecordBatch]]:
        scope = self._scope(snapshot, query)
        report = self._by_path.all(snapshot, scope, BATCH_ROWS, listing)
        return report or self._from_hits.all(snapshot, scope, BATCH_ROWS, listing)

    def _scope(self, snapshot: HitsSnapshot, query: Query) -> Scope:
        end = query.end or open_end.find(self._database, self._cached, snapshot, query.project, query.now)
        filters = replace(query.filters, policy=self._policy_of(query.project))
        return Scope(query.project, TimeRange(query.start, end), filters)

    def _under_policy(self, snapshot: HitsSnapshot, project: str, line: Sparkline) -> Sparkline:
        """Return the sparkline of a project, counted again if a source policy leaves out some hits."""
        policy = self._policy_of(project)
        if not policy:
            return line
        scope = Scope(project, activity.time_range(line.days), Filters(policy=policy))
        return activity.of_days(line.days, self._grouped.counts(snapshot, scope, TIME_UNITS[DAY_S]))

    def _last_days(self, snapshot: HitsSnapshot, query: Query, days: int) -> Scope:
        """Return the scope of a query in the last UTC days of its range."""
        scope = self._scope(snapshot, query)
        return replace(scope, time_range=last_days(scope.time_range, query.now, days))

    def _coverage(self, snapshot: HitsSnapshot) -> Coverage:
        """Return the rollups that cover the files of a snapshot, from the cache if no rollup was written since."""
        key = "coverage", snapshot.files_key, coverage.written_key(self._root)
        return self._cached(key, lambda: coverage.choose(self._root, snapshot.files), evict_first=True)
