"""Reports of one process."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.dimensions import OF_VISITS
from warehouse.control.goals import Goal
from warehouse.control.policy import Periods
from warehouse.errors import BatchDamaged, DataIncomplete
from warehouse.lake.roots import Root
from warehouse.query.moment import Moment
from warehouse.query.past import PAST_SHARE
from warehouse.query.result_cache import ResultCache
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.query.time_range import FIRST, TimeRange
from warehouse.report import pages, series, source_coverage
from warehouse.report.audience import activity, agents, errors, events, goals, people, requests, visitors, visits_sent
from warehouse.report.audience.agents import Verdicts
from warehouse.report.audience.errors import GroupBy
from warehouse.report.audience.people import People
from warehouse.report.audience.requests import RequestQuery, RobotsReads
from warehouse.report.audience.visits_sent import SentPage
from warehouse.report.cells import Scope
from warehouse.report.measured import Measured
from warehouse.report.results import Audience, Counts, Listing, Order, Query, ReportPage
from warehouse.report.scope import last_days, scope_of
from warehouse.report.source_warnings import SourceWarning
from warehouse.report.statements import Statements
from warehouse.report.time_buckets import Bucket, buckets
from warehouse.rollups import catalog, ranked
from warehouse.tables import REQUESTS_TABLE

BATCH_ROWS = 10_000
"""Maximum number of rows in a batch of a complete report."""
AGENT_PAGES_DAYS = 32
"""Maximum number of UTC days in which the pages of AI are counted: a month in any time zone."""
BY_TOTAL = Listing(with_bots=True)
"""Listing of a breakdown by path: all paths, most views first."""


class Reports:
    """Reports of one process, with their cache. Safe to call from several threads."""

    def __init__(
        self,
        reader: SnapshotReader,
        root: Root,
        spill: Path,
        cache_bytes: int,
        policy_of: Callable[[str], Periods] = lambda project: (),
        warnings_of: Callable[[str], Sequence[SourceWarning]] = lambda project: (),
        goals_of: Callable[[str], Sequence[Goal]] = lambda project: (),
    ) -> None:
        """Create the reports of the lake in `root`. Large sorts spill into the folder `spill`.

        `policy_of`, `warnings_of` and `goals_of` return the source policy, coverage warnings and goals of a project.
        """
        self._goals_of = goals_of
        self._reader, self._root, self._policy_of, self._warnings_of = reader, root, policy_of, warnings_of
        self._cached = ResultCache(cache_bytes)
        self._rollups = lru_cache(1)(lambda written_key: catalog.read_all(root))
        newest_ranking = lru_cache(1)(lambda written_key: ranked.find(root))
        reader.cache_in(ResultCache(int(cache_bytes * PAST_SHARE)))
        self._statements = Statements(
            spill, self._cached, self._chosen_rollups, lambda: newest_ranking(catalog.written_key(root))
        )

    def take(self, as_of: Moment | None = None) -> Snapshot:
        """Return the newest snapshot, or that of `as_of`: see `SnapshotReader.take`."""
        return self._reader.take(as_of)

    def views(
        self,
        snapshot: Snapshot,
        query: Query,
        offset: int,
        limit: int,
        order: Order = "total",
        audience: Audience = "all",
    ) -> ReportPage:
        """Return some paths that people or AI viewed: by default most views first, then by path in byte order."""
        scope = self._scope(snapshot, query)
        return pages.page(self._statements, snapshot, scope, offset, limit, Listing(order, audience))

    def views_of(self, snapshot: Snapshot, query: Query, paths: Collection[str]) -> dict[str, Counts]:
        """Return the counts of some paths that match the filter by path. Paths without views are absent."""
        return pages.some(self._statements, snapshot, self._scope(snapshot, query), paths)

    def all_views(
        self, snapshot: Snapshot, query: Query, order: Order = "total", audience: Audience = "all"
    ) -> tuple[Counts, Iterator[pa.RecordBatch]]:
        """Return all paths in the order of `views`, in batches of BATCH_ROWS rows."""
        scope = self._scope(snapshot, query)
        return pages.every(self._statements, snapshot, scope, BATCH_ROWS, Listing(order, audience))

    def breakdown(
        self, snapshot: Snapshot, query: Query, by: str, offset: int, limit: int, listing: Listing = BY_TOTAL
    ) -> ReportPage:
        """Return some values of a dimension, those of bots included: most views first, then by value, null last.

        `by` is one of `dimensions.BREAKDOWNS`, or of OF_VISITS: see `visitors.pages_of_visits`. `listing` is used by
        `path` only.
        """
        scope = self._scope(snapshot, query)
        if by == "path":
            page = pages.page(self._statements, snapshot, scope, offset, limit, listing)
            return replace(page, rows=page.rows.rename_columns({"path": "value"}))
        rows = self._ranked(snapshot, scope, by)
        return ReportPage.of(Counts.of(rows), rows, offset, limit)

    def all_breakdown(self, snapshot: Snapshot, query: Query, by: str) -> tuple[Counts, Iterator[pa.RecordBatch]]:
        """Return all values in the order of `breakdown`, in batches of BATCH_ROWS rows."""
        scope = self._scope(snapshot, query)
        if by == "path":
            totals, batches = pages.every(self._statements, snapshot, scope, BATCH_ROWS, BY_TOTAL)
            return totals, (batch.rename_columns(["value", *batch.schema.names[1:]]) for batch in batches)
        rows = self._ranked(snapshot, scope, by)
        return Counts.of(rows), iter(rows.combine_chunks().to_batches(BATCH_ROWS))

    def sums(self, snapshot: Snapshot, query: Query, measure: str, by: str) -> pa.Table:
        """Return a measure of the page views by a dimension: see `Statements.counts`."""
        return self._statements.counts(snapshot, self._scope(snapshot, query), by, measure=measure)

    def series(
        self, snapshot: Snapshot, query: Query, interval: str, zone: ZoneInfo, measure: str = "views"
    ) -> tuple[Counts, pa.Table]:
        """Return the views of each time bucket: start, human, ai, bot and total, with zeros for empty buckets.

        A query from FIRST begins at the first hit of the project, and one without an end ends with the bucket of `now`.

        Raises:
            TooManyBuckets: see `time_buckets.buckets`.
        """
        parts = self._buckets(snapshot, query, interval, zone)
        counts = self._statements.counts(snapshot, self._scope(snapshot, query), *series.unit(parts), measure=measure)
        rows = series.series(parts, counts)
        return Counts.of(rows), rows

    def series_by_operator(self, snapshot: Snapshot, query: Query, interval: str) -> dict[str, pa.Table]:
        """Return the series by days, weeks or months of each operator of AI agents that has a view: see `series`."""
        assert interval != "hour", "the list of agents is by day"
        parts = self._buckets(snapshot, query, interval, ZoneInfo("UTC"))
        counts = self._statements.counts(snapshot, self._scope(snapshot, query), *agents.COLUMNS, "day")
        operators = (name for name in counts["operator"].unique().to_pylist() if name is not None)
        return {name: series.series(parts, counts.filter(pc.field("operator") == name)) for name in operators}

    def agents(self, snapshot: Snapshot, query: Query) -> pa.Table:
        """Return the AI agents and other bots: see `agents.list_agents`."""
        scope = self._scope(snapshot, query)
        return agents.list_agents(self._statements.counts(snapshot, scope, *agents.COLUMNS, "day"))

    def user_agents(self, snapshot: Snapshot, query: Query, traffic: str | None, limit: int) -> pa.Table:
        """Return the user agents with most views in the last 7 UTC days of the range: see `agents.rank_user_agents`."""
        scope = self._last_days(snapshot, query, agents.EVIDENCE_DAYS)
        return agents.rank_user_agents(self._statements.counts(snapshot, scope, *agents.USER_AGENTS), traffic, limit)

    def verdicts(self, snapshot: Snapshot, query: Query) -> Verdicts:
        """Return the verdicts of the verification on AI agents and other bots: see `Verdicts`."""
        scope, last = self._scope(snapshot, query), self._last_days(snapshot, query, agents.EVIDENCE_DAYS)
        states = self._statements.counts(snapshot, scope, *agents.STATES)
        return agents.verdicts(states, self._statements.counts(snapshot, last, *agents.EVIDENCE))

    def agent_pages(self, snapshot: Snapshot, query: Query, by: str = "agent") -> dict[str, int]:
        """Return the number of distinct paths that each agent or operator read on the last AGENT_PAGES_DAYS."""
        return pages.agent_pages(self._statements, snapshot, self._last_days(snapshot, query, AGENT_PAGES_DAYS), by)

    def visits_sent(
        self, snapshot: Snapshot, query: Query, hosts: Mapping[str, str], campaigns: Mapping[str, str]
    ) -> dict[str, int]:
        """Return the views by people whom AI products sent, by operator: that of the referrer, or else of the campaign.

        `hosts` and `campaigns` have the operators by the hosts of their products and by the values of `utm_source`.
        Filters by traffic, agent, operator, purpose and verification do not apply to people and are ignored.
        """
        return visits_sent.by_operator(self._statements, snapshot, self._scope(snapshot, query), hosts, campaigns)

    def pages_sent(
        self, snapshot: Snapshot, query: Query, hosts: Mapping[str, str], campaigns: Mapping[str, str], limit: int
    ) -> list[SentPage] | None:
        """Return the pages with most visits of AI products on the last 32 UTC days; None if they take long to count."""
        scope = self._last_days(snapshot, query, AGENT_PAGES_DAYS)
        return visits_sent.by_page(self._statements, snapshot, scope, hosts, campaigns, limit)

    def first_ai_days(self, snapshot: Snapshot, query: Query, paths: Collection[str]) -> dict[str, date]:
        """Return the UTC day of the first view by AI, in any range, of each path that has one; at most 10,000 paths."""
        return pages.first_ai_days(self._statements, snapshot, query.project, paths)

    def sparklines(self, snapshot: Snapshot, projects: Collection[str], now: datetime) -> dict[str, activity.Sparkline]:
        """Return the views by people and by AI of each project on the last 30 UTC days, today included."""
        return activity.sparklines(self._statements, snapshot, projects, now, self._policy_of)

    def last_hits(self, snapshot: Snapshot, projects: Collection[str]) -> dict[str, datetime | None]:
        """Return the time of the last hit of each project; None without a hit."""
        return activity.last_hits(self._statements, snapshot, projects)

    def first_day(self, snapshot: Snapshot, project: str, dimension: str) -> date | None:
        """Return the first UTC day with a known value of a dimension, or with a measured evidence; None without one."""
        return activity.first_day(self._statements, snapshot, project, dimension)

    def errors(self, query: RequestQuery, moment: Moment) -> pa.Table:
        """Return errors of the moment of a snapshot: see `errors.rows`."""
        return errors.rows(self._statements.fast, self._reader.take(moment, REQUESTS_TABLE), query)

    def error_groups(self, query: RequestQuery, moment: Moment, by: GroupBy, offset: int, limit: int) -> pa.Table:
        """Return the paths or agents with errors: see `errors.groups`."""
        table = self._reader.take(moment, REQUESTS_TABLE)
        return errors.groups(self._statements.fast, table, query, by, offset, limit)

    def requests(self, query: RequestQuery, moment: Moment, by: str) -> pa.Table:
        """Return the requests of access logs: see `requests.rows`."""
        return requests.rows(self._statements.fast, self._reader.take(moment, REQUESTS_TABLE), query, by)

    def robots_reads(self, project: str, moment: Moment, since: Sequence[datetime]) -> RobotsReads:
        """Return when AI agents first requested robots.txt: see `requests.robots_reads`."""
        return requests.robots_reads(self._statements.fast, self._reader.take(moment, REQUESTS_TABLE), project, since)

    def visitor_counts(self, snapshot: Snapshot, query: Query, *by: str) -> pa.Table:
        """Return the visitors and visits by some dimensions: see `visitors.counts`. It may raise TooManyViews."""
        return visitors.counts(self._statements, snapshot, self._scope(snapshot, query), *by)

    def visitor_series(self, snapshot: Snapshot, query: Query, interval: str, zone: ZoneInfo) -> pa.Table:
        """Return the visitors and visits in the intervals of `series`. It may raise TooManyViews."""
        parts = self._buckets(snapshot, query, interval, zone)
        return series.series(parts, self.visitor_counts(snapshot, query, *series.unit(parts)), visitors.COLUMNS)

    def goals(self, snapshot: Snapshot, query: Query, by: str = "") -> Iterator[list[goals.Conversion]]:
        """Yield the conversions of each goal of the project: see `Conversions.each_goal`."""
        scope, defined = self._scope(snapshot, query), self._goals_of(query.project)
        return goals.Conversions(self._statements, snapshot, scope, defined, by).each_goal()

    def events(self, snapshot: Snapshot, query: Query, chosen: events.ChosenEvents) -> pa.Table:
        """Return the events by name, value and traffic: see `events.counts`."""
        return events.counts(self._statements, snapshot, self._scope(snapshot, query), chosen)

    def people(self, snapshot: Snapshot, query: Query) -> People:
        """Return the views by people by evidence: see `people.people`."""
        return people.people(self._statements, snapshot, self._scope(snapshot, query))

    def visitors_known(self, snapshot: Snapshot, query: Query) -> Measured:
        """Return when the visitors of each kind of readers were known, for the sources that a query selects."""
        policy = self._policy_of(query.project)
        return visitors.known(self._statements, snapshot, query.project, self.measured(snapshot, query), policy)

    def source_coverage(self, snapshot: Snapshot, project: str) -> source_coverage.Coverage:
        """Return the first and last hit of each source of a project, its days without a hit, and warnings."""
        result = source_coverage.coverage(self._statements, snapshot, project, self._policy_of(project))
        return replace(result, warnings=(*result.warnings, *self._warnings_of(project)))

    def measured(self, snapshot: Snapshot, query: Query) -> Measured:
        """Return when the sources that a query selects counted each kind of readers."""
        return source_coverage.measured(self._statements, snapshot, query, self._policy_of(query.project))

    def fault(self) -> str | None:
        """Return the reason why reports cannot be computed; None if they can."""
        try:
            self._reader.take()
        except (DataIncomplete, BatchDamaged) as error:
            return str(error)
        return None

    @property
    def warning(self) -> str | None:
        """Return the warning about projects without some reports."""
        return self._statements.warning

    def close(self) -> None:
        self._statements.close()
        self._reader.close()

    def _ranked(self, snapshot: Snapshot, scope: Scope, by: str) -> pa.Table:
        """Return the rows of a breakdown: value, human, ai, bot and total."""
        if by in OF_VISITS:
            return visitors.pages_of_visits(self._statements, snapshot, scope, by)
        counts = self._statements.counts(snapshot, scope, by).rename_columns({by: "value"})
        rows = counts.append_column("total", pc.add(counts["human"], counts["ai"]))
        return rows.sort_by([("total", "descending"), ("value", "ascending")])

    def _buckets(self, snapshot: Snapshot, query: Query, interval: str, zone: ZoneInfo) -> list[Bucket]:
        start, project = query.start, query.project
        first = source_coverage.first_hit(self._statements, snapshot, project) if start == FIRST else start
        return buckets(TimeRange(first, query.end or query.now + timedelta.resolution), interval, zone) if first else []

    def _scope(self, snapshot: Snapshot, query: Query) -> Scope:
        return scope_of(self._statements, snapshot, query, self._policy_of(query.project))

    def _last_days(self, snapshot: Snapshot, query: Query, days: int) -> Scope:
        return last_days(self._scope(snapshot, query), query.now, days)

    def _chosen_rollups(self, snapshot: Snapshot) -> catalog.ChosenRollups:
        """Return the rollups that cover the files of a snapshot. They are read again after each change of theirs."""
        written = catalog.written_key(self._root)
        rollups = "rollups", snapshot.files_key, written
        return self._cached(rollups, lambda: catalog.match(self._rollups(written), snapshot.files))
