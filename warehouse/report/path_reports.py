"""Views by path, from the blocks of `warehouse.blocks`.

Whole UTC days are counted from rollups, and from the counts of files that no rollup covers. The edges of a range are
counted from `hits`. Hot rows are added last: only the rows of batches that came since the last report are converted.
"""

import logging
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.blocks import hits_files, hot, project, selection, sums
from warehouse.blocks.cumulative import Array
from warehouse.blocks.hits_files import ALWAYS
from warehouse.blocks.hot import NO_HOT_VIEWS, HotViews
from warehouse.blocks.listing import Listing, Views
from warehouse.blocks.months import DAYS
from warehouse.blocks.project import ProjectBlock
from warehouse.blocks.selection import Selection
from warehouse.blocks.sums import NO_ADDITIONS, Additions, PathSums, Rows
from warehouse.control import policy
from warehouse.errors import BlockTooLarge
from warehouse.lake import row_groups
from warehouse.lake.delta_table import File
from warehouse.query import edge_rows
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache, compute_released
from warehouse.query.time_range import RoundedRange, TimeRange, round_to_days
from warehouse.report.by_path.block_months import BlockMonths
from warehouse.report.dimensions.count import choose
from warehouse.report.filters import Counts, Filters, Page
from warehouse.report.hit_counts import Scope
from warehouse.rollups.coverage import Coverage

UNCOVERED_ROWS_MAX = 2_000_000
"""Maximum number of rows in files that are counted for the blocks by one report."""
DAILY_PATHS_MAX = 100_000
"""Maximum number of paths of a project whose views are added up by day. With more, a count of `hits` is faster."""
ALL_ROWS = 1 << 62
LOG = logging.getLogger("readership.reports")
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Inputs of a count: the scope of the hits, and the files, hot rows and block from which they are counted.

    `key` is the key of the block in the cache.
    """

    snapshot: HitsSnapshot
    scope: Scope
    coverage: Coverage
    block: ProjectBlock
    key: Hashable

    def key_of(self, kind: str, *rest: Hashable) -> Hashable:
        """Return the key of a result that depends on the block and on the filters by columns that the block lacks."""
        return kind, self.block, *rest, self.scope.filters.by_hit


class PathReports:
    """Reports by path of one process. Safe to call from several threads."""

    def __init__(
        self, database: duckdb.DuckDBPyConnection, cached: ResultCache, coverage: Callable[[HitsSnapshot], Coverage]
    ) -> None:
        """Create the reports. `coverage` returns the rollups that cover the files of a snapshot."""
        self._database, self._cached, self._coverage = database, cached, coverage
        self._newest: WeakValueDictionary[str, ProjectBlock] = WeakValueDictionary()
        self._too_large: dict[str, Hashable] = {}  # keys of the blocks that were too large, by project
        self.large = set[str]()  # projects for which `is_large` was true

    @property
    def projects(self) -> list[str]:
        """Return the projects of which a block is in memory."""
        return list(self._newest)

    def is_large(self, snapshot: HitsSnapshot, name: str) -> bool:
        """Return whether the paths of a project do not fit into memory: its reports are then counted from `hits`."""
        coverage = self._coverage(snapshot)
        uncovered = sum(row_groups.path_bytes(file.path, name) for file in coverage.uncovered)
        try:
            is_large = uncovered > project.PATHS_BYTES_MAX or self.block(coverage, name) is None
        except BlockTooLarge:
            is_large = True
        if not is_large:
            self.large.discard(name)
        elif name not in self.large:
            LOG.warning("the paths of project %s do not fit into memory: its reports by path are slow", name)
            self.large.add(name)
        return is_large

    def page(self, snapshot: HitsSnapshot, scope: Scope, offset: int, limit: int, listing: Listing) -> Page | None:
        """Return a page of the paths; None if the blocks cannot answer.

        They cannot if the project `is_large`. If more than UNCOVERED_ROWS_MAX rows would be added to the blocks, a
        count of the files alone is faster.
        """
        inputs = self._inputs(snapshot, scope)
        if inputs is None:
            return None
        counted, added = self._count(inputs)
        ids, views, rows = sums.page(counted, added, offset, limit, listing)
        return Page(_totals(counted, added), _table(inputs.block, ids, views), offset + limit < rows)

    def all(
        self, snapshot: HitsSnapshot, scope: Scope, batch_rows: int, listing: Listing
    ) -> tuple[Counts, Iterator[pa.RecordBatch]] | None:
        """Return all paths in the order of pages, in batches; None if the blocks cannot answer: see `page`."""
        inputs = self._inputs(snapshot, scope)
        if inputs is None:
            return None
        counted, added = self._count(inputs)
        ids, _, _ = sums.page(counted, added, 0, ALL_ROWS, listing)
        parts = (ids[first : first + batch_rows] for first in range(0, ids.size, batch_rows))
        tables = (_table(inputs.block, part, sums.views_of(counted, added, part)) for part in parts)
        return _totals(counted, added), (batch for table in tables for batch in table.to_batches())

    def some(self, snapshot: HitsSnapshot, scope: Scope, paths: Collection[str]) -> pa.Table | None:
        """Return the views of paths that match the filters by path; None if the blocks cannot answer: see `page`."""
        inputs = self._inputs(snapshot, scope)
        if inputs is None:
            return None
        ids = inputs.block.paths.add(pa.array(paths, pa.string()))
        return _table(inputs.block, ids, sums.views_of(*self._count(inputs), ids))

    def read_days(self, snapshot: HitsSnapshot, name: str, index: int) -> None:
        """Read the daily views of a project in a month into the cache, if the block is there.

        `index` is that of the month in the block.
        """
        key = _key(self._coverage(snapshot), name)
        block: ProjectBlock | None = self._cached.get(key)
        if block is not None:
            BlockMonths(self._cached, block, key).month(index)

    def block(self, coverage: Coverage, name: str) -> tuple[ProjectBlock, Hashable]:
        """Return the block of a project, and its key in the cache.

        Raises:
            BlockTooLarge: see `project.read`.
        """
        key = _key(coverage, name)
        if self._too_large.get(name) == key:
            raise BlockTooLarge(name)
        read = partial(project.read, coverage.parts, name, self._newest.get(name))
        try:
            block = self._cached(key, lambda: compute_released(read), is_costly=True)
        except BlockTooLarge:
            self._too_large[name] = key
            raise
        self._newest[name] = block
        return block, key

    def months(self, coverage: Coverage, name: str) -> BlockMonths:
        """Return the months of the block of a project."""
        return BlockMonths(self._cached, *self.block(coverage, name))

    def viewed_days(self, coverage: Coverage, scope: Scope) -> frozenset[str]:
        """Return UTC days (YYYY-MM-DD), among which are the whole days of a scope with a view of its paths.

        Other filters are ignored: the days are the same for all reports of a path.
        """
        block, key = self.block(coverage, scope.project)
        whole, bounds = round_to_days(scope.time_range).whole_days, scope.filters.path_bounds
        read = partial(self._viewed_days, block, key, block.paths.sorted_between(bounds), whole)
        days: pa.Array = self._cached(("viewed days", block, bounds, *whole), read, key, evict_first=True)
        return frozenset(days.to_pylist()) | {file.partition for file in coverage.uncovered}

    def _viewed_days(self, block: ProjectBlock, key: Hashable, ids: slice, whole: Sequence[TimeRange]) -> pa.Array:
        """Return the days of rollups with views of sorted path ids; all days of a month if there are many paths."""
        indices = {index for days in whole for index in block.days_by_month((days.start.date(), days.end.date()))}
        viewed, months = list[str](), BlockMonths(self._cached, block, key)
        for index in sorted(index for index in indices if block.is_member(index)[ids].any()):
            days = sorted(block.parts[index].days)
            if block.paths.sorted_count <= DAILY_PATHS_MAX:
                views = months.month(index).views.values()
                counts = sum((each.by_day(ids) for each in views), np.zeros(DAYS, np.int64))
                days = [day for day in days if counts[int(day[-2:]) - 1]]
            viewed += days
        return pa.array(viewed, pa.string())

    def _inputs(self, snapshot: HitsSnapshot, scope: Scope) -> _Inputs | None:
        if self.is_large(snapshot, scope.project):
            return None
        coverage = self._coverage(snapshot)
        block, key = self.block(coverage, scope.project)
        inputs = _Inputs(snapshot, scope, coverage, block, key)
        files = _within(coverage.uncovered, round_to_days(scope.time_range).whole_days)
        rows = sum(file.rows for file in files if self._cached.get(inputs.key_of("file", file.path)) is None)
        return inputs if rows <= UNCOVERED_ROWS_MAX else None

    def _count(self, inputs: _Inputs) -> tuple[PathSums, Additions]:
        """Return the views in files and in hot rows. Put the block again, because it may have grown by their paths."""
        counted, added = self._sums(inputs), self._added(inputs)
        self._cached.put(inputs.key, inputs.block)
        return counted, added

    def _sums(self, inputs: _Inputs) -> PathSums:
        parts = round_to_days(inputs.scope.time_range)
        whole = _within(inputs.coverage.uncovered, parts.whole_days)
        of_edges = _within(inputs.snapshot.files, [edge.time_range for edge in parts.edges])
        key = ("sums", inputs.scope, inputs.block, *(file.path for file in (*whole, *of_edges)))
        return self._cached(key, lambda: self._add_up(inputs, parts, whole), inputs.key, evict_first=True)

    def _add_up(self, inputs: _Inputs, parts: RoundedRange, whole: Sequence[File]) -> PathSums:
        scope, block = inputs.scope, inputs.block
        edges = [edge.time_range for edge in parts.edges]
        edge_rows.read_together(self._database, self._cached, inputs.snapshot.files, scope.project, edges)
        rows = self._rows(inputs, whole)
        for edge in parts.edges:
            rows += (each.signed(edge.sign) for each in self._edge(inputs, edge.time_range))
        chosen = _selection(block, scope.filters)  # after the paths of the rows have their ids
        size = chosen.width + block.paths.later_count
        human, ai, bot = views = tuple(np.zeros(size, block.dtype) for _ in range(3))
        months = BlockMonths(self._cached, block, inputs.key)
        for days in parts.whole_days:
            for span in policy.spans(scope.filters.policy, days.start.date(), days.end.date()):
                months.add(views, chosen, scope.filters.by_hit, span)
        for each in rows:
            each.add((human, ai, bot), chosen)
        return PathSums(chosen, (human, ai, bot))

    def _edge(self, inputs: _Inputs, edge: TimeRange) -> list[Rows]:
        """Return the counts of an edge."""
        scope, files = inputs.scope, edge_rows.files_of(inputs.snapshot.files, edge)
        if not files:
            return []
        hits = edge_rows.read(self._database, self._cached, files, scope.project, edge)
        if hits is None:
            return [*self._count_files(inputs, files, edge).values()]
        return [hits_files.convert(choose(hits, scope.filters.by_hit), inputs.block.paths)]

    def _rows(self, inputs: _Inputs, files: Sequence[File]) -> list[Rows]:
        """Return the counts of files, of which those that are not in the cache are counted by one query."""
        # Before the first put, which may evict the counts of another file.
        cached = {file.path: self._cached.get(inputs.key_of("file", file.path)) for file in files}
        known = {path: rows for path, rows in cached.items() if rows is not None}
        uncounted = [file for file in files if file.path not in known]
        counted = {}
        if uncounted:
            counted = self._count_files(inputs, uncounted)
            for path, rows in counted.items():
                self._cached.put(inputs.key_of("file", path), rows, inputs.key)
        return [*counted.values(), *known.values()]

    def _count_files(self, inputs: _Inputs, files: Sequence[File], time_range: TimeRange = ALWAYS) -> dict[str, Rows]:
        """Return the views in each file, by the path of the file."""
        scope, paths = inputs.scope, inputs.block.paths
        return hits_files.count(
            self._database, files, scope.project, paths, scope.filters.by_hit.condition(), time_range
        )

    def _added(self, inputs: _Inputs) -> Additions:
        """Return the views of the hot rows."""
        rows, block, filters = inputs.snapshot.hot, inputs.block, inputs.scope.filters
        if rows.num_rows == 0:
            return NO_ADDITIONS
        key = inputs.key_of("hot")
        known: HotViews = self._cached.get(key) or NO_HOT_VIEWS
        read = known.read(rows, block.project, block.paths, lambda hot: choose(hot, filters.by_hit))
        if read is not known:
            self._cached.put(key, read, inputs.key)
        return hot.select(read, rows, _selection(block, filters), inputs.scope.time_range)


def _key(coverage: Coverage, name: str) -> Hashable:
    """Return the key of the block of a project in the cache."""
    return "block", name, tuple((part.rollup.folder, None if part.is_whole else part.days) for part in coverage.parts)


def _selection(block: ProjectBlock, filters: Filters) -> Selection:
    return selection.select(block.paths, filters.path_bounds, filters.source, filters.selected_traffic)


def _within(files: Sequence[File], ranges: Sequence[TimeRange]) -> list[File]:
    """Return the files of the days in ranges."""
    days = [(_day(each.start), _day(each.end - _MICROSECOND)) for each in ranges]
    return [file for file in files if any(first <= file.partition <= last for first, last in days)]


def _day(instant: datetime) -> str:
    return instant.date().isoformat()


def _totals(counted: PathSums, added: Additions) -> Counts:
    return Counts(*(total + int(more.sum()) for total, more in zip(counted.totals, added.views, strict=True)))


def _table(block: ProjectBlock, ids: Array, views: Views) -> pa.Table:
    human, ai, bot = views
    columns = {"path": block.paths.take(ids), "human": human, "ai": ai, "bot": bot, "total": human + ai}
    return pa.table(columns)
