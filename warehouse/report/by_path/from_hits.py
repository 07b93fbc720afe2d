"""Reports by path of projects whose paths do not fit into memory: counted from `hits` by DuckDB, which spills.

They have a database of their own, and run one at a time: no other report takes their memory. They raise SlowReport for
a caller that accepts only fast reports.
"""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import chain, count, islice
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.blocks.listing import Audience, Listing, Order
from warehouse.errors import SlowReport, SpillFull
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.plural import counted
from warehouse.query import edge_rows, engine
from warehouse.query.hits_snapshot import HOT_COLUMNS, HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.report import hit_counts
from warehouse.report.filters import Counts, Page
from warehouse.report.grouping import Grouping
from warehouse.report.hit_counts import Scope

MEMORY_LIMIT = "512MB"
"""Memory of the database. Files of older releases have row groups that take 270 MB."""
SPILL_LIMIT = "8GiB"
"""Disk space of the database: 16 open exports of 2,000,000 paths of 200 characters."""
_COLUMNS = ", ".join(HOT_COLUMNS)
_NUMBERS = ", ".join(f"count(*) FILTER (traffic = '{each}') AS {each}" for each in ("human", "ai", "bot"))
_TOTALS = f"SELECT {_NUMBERS} FROM {{rows}} WHERE {{condition}}"
_PATHS = f"""
SELECT *, human + ai AS total FROM (SELECT path, {_NUMBERS} FROM {{rows}} WHERE {{condition}} GROUP BY path)
"""
_AGENT_PAGES = """
SELECT {by}, count(*)
FROM (SELECT DISTINCT {by}, path FROM {rows} WHERE {condition} AND traffic = 'ai' AND {by} IS NOT NULL)
GROUP BY 1 ORDER BY 1
"""
_FIRST_DAYS = """
SELECT path, min(ts::DATE) FROM {rows}
WHERE project_id = $project AND traffic = 'ai' AND path IN (SELECT unnest($paths::VARCHAR[]))
GROUP BY path
"""
_BATCH = "FROM report WHERE rowid >= ? AND rowid < ?"
_IS_LISTED: Mapping[Audience, str] = {
    "ai_only": "ai > 0 AND human = 0",
    "people_only": "human > 0 AND ai = 0",
    "all": "total > 0",
}
_ORDER: Mapping[Order, str] = {
    "path": "path",
    **{name: f"{name} DESC, path" for name in ("total", "human", "ai", "bot")},
}


class FromHits:
    """Reports of one process. Safe to call from several threads."""

    def __init__(self, spill: Path, cached: ResultCache) -> None:
        self._database, self._cached, self._lock = engine.connect(spill, MEMORY_LIMIT), cached, threading.Lock()
        self._database.execute(f"SET max_temp_directory_size = '{SPILL_LIMIT}'")  # ignored in the configuration
        self.failed = set[str]()  # projects whose last report needed more memory than MEMORY_LIMIT

    def page(self, snapshot: HitsSnapshot, scope: Scope, offset: int, limit: int, listing: Listing) -> Page:
        """Return a page of the paths."""
        sql = f"{_listed(listing)} LIMIT {limit + 1} OFFSET {offset}"
        rows = self._rows(snapshot, scope, sql)
        return Page(self._totals(snapshot, scope), rows.slice(0, limit), rows.num_rows > limit)

    def all(
        self, snapshot: HitsSnapshot, scope: Scope, batch_rows: int, listing: Listing
    ) -> tuple[Counts, Iterator[pa.RecordBatch]]:
        """Return all paths in the order of pages, in batches."""
        batches = self._batches(snapshot, scope, batch_rows, _listed(listing))
        first = list(islice(batches, 1))  # so that an error is raised here
        return self._totals(snapshot, scope), chain(first, batches)

    def some(self, snapshot: HitsSnapshot, scope: Scope, paths: Collection[str]) -> pa.Table:
        """Return the views of paths that match the filters by path."""
        sql = _PATHS.replace("{condition}", "{condition} AND path IN (SELECT unnest($paths::VARCHAR[]))")
        return self._rows(snapshot, scope, sql, paths=tuple(paths))

    def counts(self, snapshot: HitsSnapshot, scope: Scope, grouping: Grouping) -> pa.Table:
        """Return counts of the hits in files, in the columns of `hit_counts.count_files`."""
        files = edge_rows.files_of(snapshot.files, scope.time_range)
        with self._alone(scope.project):
            return hit_counts.count_hits_in(self._database, files, scope, grouping)

    def agent_pages(self, snapshot: HitsSnapshot, scope: Scope, by: str) -> dict[str, int]:
        """Return the number of distinct paths of each agent, operator or purpose: see `AgentPages.count`."""
        return dict(
            zip(*self._rows(snapshot, scope, _AGENT_PAGES.replace("{by}", by)).to_pydict().values(), strict=True)
        )

    def first_days(self, snapshot: HitsSnapshot, scope: Scope, paths: Collection[str]) -> dict[str, date]:
        """Return the UTC day of the first view by AI of each path that has one: see `FirstDays.by_ai`."""
        rows = self._rows(snapshot, scope, _FIRST_DAYS, paths=tuple(sorted(paths)))
        return dict(zip(*rows.to_pydict().values(), strict=True))

    def warning(self, large: Collection[str]) -> str | None:
        """Return how many projects have no reports by path, or slow ones: those that are `large`."""
        if self.failed:
            return f"reports of {counted(len(self.failed), 'project')} need more memory than they may use"
        if large:
            return f"the paths of {counted(len(large), 'project')} do not fit into memory: their reports are slow"
        return None

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def _alone(self, project: str) -> Iterator[None]:
        """Run a query while others wait.

        Raises:
            SlowReport
            SpillFull
        """
        caller = engine.CALLER.get()
        if caller is not None:
            if not caller.accepts_slow:
                raise SlowReport(project)
            caller.is_slow = True
        with self._lock:
            try:
                yield
            except duckdb.OutOfMemoryException as error:
                if "max_temp_directory_size" in str(error):
                    raise SpillFull(SPILL_LIMIT) from None
                self.failed.add(project)
                raise
            self.failed.discard(project)

    def _totals(self, snapshot: HitsSnapshot, scope: Scope) -> Counts:
        return Counts.of(self._rows(snapshot, scope, _TOTALS))

    def _rows(self, snapshot: HitsSnapshot, scope: Scope, sql: str, **values: tuple[str, ...]) -> pa.Table:
        """Return the rows of a query, from the cache if possible."""

        def read() -> pa.Table:
            with self._alone(scope.project), engine.interruptible_cursor(self._database) as cursor:
                return _run(cursor, snapshot, scope, sql, values).to_arrow_table()

        return self._cached((scope, sql, *values.items(), snapshot.rows_key), read, evict_first=True)

    def _batches(self, snapshot: HitsSnapshot, scope: Scope, batch_rows: int, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query from a temporary table, which spills: open results of sorts fill the memory."""
        with self._database.cursor() as cursor:
            with self._alone(scope.project), engine.interruptible(cursor):
                _run(cursor, snapshot, scope, f"CREATE TEMP TABLE report AS {sql}", {})
            for start in count(step=batch_rows):
                with self._alone(scope.project), engine.interruptible(cursor):
                    rows = cursor.sql(_BATCH, params=[start, start + batch_rows]).to_arrow_table()
                if not rows.num_rows:
                    return
                yield from rows.to_batches()


def _run(
    cursor: duckdb.DuckDBPyConnection,
    snapshot: HitsSnapshot,
    scope: Scope,
    sql: str,
    values: Mapping[str, Sequence[str]],
) -> duckdb.DuckDBPyRelation:
    """Return a query of the hits in a scope. DuckDB runs CREATE at once, and returns None for it."""
    condition, bound = scope.filters.condition()
    times = {"start": scope.time_range.start, "end": scope.time_range.end}
    within = f"project_id = $project AND ts >= $start AND ts < $end AND {condition}"
    parameters = {"project": scope.project, **times, **bound, **{name: list(each) for name, each in values.items()}}
    files = edge_rows.files_of(snapshot.files, scope.time_range)
    cursor.register("hot", snapshot.hot)
    text = sql.format(rows=_union(files), condition=within)
    used = {name: value for name, value in parameters.items() if f"${name}" in text}
    return cursor.sql(text, params=used)


def _listed(listing: Listing) -> str:
    is_listed = "true" if listing.with_bots and listing.audience == "all" else _IS_LISTED[listing.audience]
    return f"FROM ({_PATHS}) WHERE {is_listed} ORDER BY {_ORDER[listing.order]}"


def _union(files: Sequence[File]) -> str:
    """Return the subquery of the rows in files and of the hot rows."""
    stored = engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)
    return f"(SELECT {_COLUMNS} FROM {stored} UNION ALL SELECT {_COLUMNS} FROM hot)"
