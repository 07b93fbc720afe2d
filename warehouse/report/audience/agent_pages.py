"""Number of distinct paths that each AI agent, operator or purpose read in the last days of a range.

The whole UTC days that are nearest to the range are counted from rollups, of which a month of 8 million hits is read in
60 ms of processor time. The range is limited to DAYS. A path that was read at an edge only is added, and one that was
read on a day only within the edge that is subtracted is left out.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks import hits_files, selection
from warehouse.blocks.cumulative import Array
from warehouse.blocks.project import ProjectBlock
from warehouse.blocks.selection import Selection
from warehouse.encoding import encoded
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import edge_rows, engine
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange, round_to_days
from warehouse.report.filters import Filters
from warehouse.report.hit_counts import Scope, whole_days
from warehouse.rollups import sorted_rows
from warehouse.rollups.coverage import Coverage, Part
from warehouse.rollups.schema import SOURCES, TRAFFIC

DAYS = 32
"""Maximum number of UTC days that are read: a month in any time zone."""
By = Literal["agent", "operator", "purpose"]
"""Columns of readers by which paths are counted."""
_COLUMNS = ("agent", "operator", "purpose")
_READ = """
SELECT agent, operator, purpose, path, count(*) AS views
FROM {rows}
WHERE project_id = $project AND traffic = 'ai' AND ts >= $start AND ts < $end AND {condition}
GROUP BY ALL
"""
_STORED = ("day", "path_id", "source", "traffic", "views")
Reader = tuple[str | None, ...]
"""Agent, operator and purpose of a hit."""


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """Path ids and views of each reader. A path may have several items, whose views add up. Views may be negative."""

    of_reader: Mapping[Reader, tuple[Array, Array]]

    @property
    def nbytes(self) -> int:
        return sum(ids.nbytes + views.nbytes for ids, views in self.of_reader.values())

    def times(self, sign: int) -> "Reads":
        return Reads({reader: (ids, views * sign) for reader, (ids, views) in self.of_reader.items()})


@dataclass(frozen=True, slots=True, eq=False)
class MonthReads:
    """Rows of the reads of a month: a slice of the arrays for each reader, whose rows are in the order of days."""

    readers: Mapping[Reader, slice]
    days: Array
    path_ids: Array
    sources: Array
    views: Array

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in (self.days, self.path_ids, self.sources, self.views))

    def on(self, days: tuple[int, ...], filters: Filters) -> Reads:
        """Return the reads of some days of the month that match the filters, without that by path."""
        wanted = [filters.agents.get(name) for name in _COLUMNS]
        return Reads(
            {
                reader: (self.path_ids[rows], self.views[rows])
                for reader, each in self.readers.items()
                if all(text in (None, value) for text, value in zip(wanted, reader, strict=True))
                for rows in [self._rows(each, days, filters.source)]
            }
        )

    def _rows(self, of_reader: slice, days: tuple[int, ...], source: str | None) -> slice | Array:
        within = self.days[of_reader]
        first, end = of_reader.start + np.searchsorted(within, [days[0], days[-1] + 1])
        rows = slice(first, end)
        if source is None and days[-1] - days[0] + 1 == len(days):
            return rows
        is_chosen = np.isin(self.days[rows], days)
        if source is not None:
            is_chosen &= self.sources[rows] == (SOURCES.index(source) if source in SOURCES else len(SOURCES))
        return np.asarray(first + np.flatnonzero(is_chosen))


class AgentPages:
    """Numbers of paths of one process. Safe to call from several threads."""

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        cached: ResultCache,
        coverage: Callable[[HitsSnapshot], Coverage],
        block: Callable[[Coverage, str], tuple[ProjectBlock, Hashable]],
    ) -> None:
        """Create the reports. `coverage` returns the rollups for a snapshot, `block` the block of a project."""
        self._database, self._cached, self._coverage, self._block = database, cached, coverage, block

    def count(self, snapshot: HitsSnapshot, scope: Scope, by: By) -> dict[str, int]:
        """Return the number of distinct paths of each agent, operator or purpose. Unknown ones are left out."""
        if "ai" not in scope.filters.kinds:
            return {}
        coverage = self._coverage(snapshot)
        if scope.filters.needs_hits:
            coverage = Coverage((), snapshot.files)
        block, key = self._block(coverage, scope.project)
        parts = round_to_days(scope.time_range)
        reads = [self._read_hot(snapshot.hot, scope, block)] if snapshot.hot.num_rows else []
        reads += [
            self._edge(snapshot.files, each.time_range, scope, block, key).times(each.sign) for each in parts.edges
        ]
        for days in parts.whole_days:
            if files := edge_rows.files_of(coverage.uncovered, days):
                reads.append(self._files(files, replace(scope, time_range=days), block, key))
            for index, numbers in _days_by_month(block.parts, days):
                reads.append(self._month(index, block, key).on(numbers, scope.filters))
        self._cached.put(key, block)  # the block may have grown by the paths of the hits
        chosen = selection.select(block.paths, scope.filters.path_bounds, None, TRAFFIC)
        return _count(reads, _COLUMNS.index(by), chosen)

    def read_month(self, snapshot: HitsSnapshot, project: str, index: int) -> None:
        """Read the reads of a project in a month into the cache. `index` is that of the month in the block."""
        block, key = self._block(self._coverage(snapshot), project)
        self._month(index, block, key)

    def _month(self, index: int, block: ProjectBlock, key: Hashable) -> MonthReads:
        return self._cached(("agent pages", block, index), lambda: _read_month(index, block), key)

    def _edge(self, files: Sequence[File], edge: TimeRange, scope: Scope, block: ProjectBlock, key: Hashable) -> Reads:
        """Return the reads at an edge."""
        files, scope = edge_rows.files_of(files, edge), replace(scope, time_range=edge)
        if scope.filters.needs_hits:
            return self._files(files, scope, block, key)
        hits = edge_rows.read(self._database, self._cached, files, scope.project, edge)
        return self._files(files, scope, block, key) if hits is None else _of_hits(hits, scope.filters, block)

    def _files(self, files: Sequence[File], scope: Scope, block: ProjectBlock, key: Hashable) -> Reads:
        names = tuple(file.path for file in files)
        return self._cached(("agent pages", scope, block, names), lambda: self._read_files(files, scope, block), key)

    def _read_files(self, files: Sequence[File], scope: Scope, block: ProjectBlock) -> Reads:
        with self._database.cursor() as cursor:
            return _read(cursor, engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE), scope, block)

    def _read_hot(self, hot: pa.Table, scope: Scope, block: ProjectBlock) -> Reads:
        with self._database.cursor() as cursor:
            cursor.register("hot", hot)
            return _read(cursor, "hot", scope, block)


def _days_by_month(parts: Sequence[Part], time_range: TimeRange) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the valid days of the month that are whole days in a range, by the index of the month."""
    first, end = whole_days(time_range)
    for index, part in enumerate(parts):
        if days := tuple(sorted(int(day[-2:]) for day in part.days if first <= day < end)):
            yield index, days


def _read_month(index: int, block: ProjectBlock) -> MonthReads:
    """Read the reads of all readers in a month."""
    file = block.parts[index].rollup.agent_paths
    rows = sorted_rows.read(file, {"project_id": block.project}, (*_STORED, *_COLUMNS), _COLUMNS)
    rows = rows.filter(pc.field("traffic") == TRAFFIC.index("ai"))
    readers, order, bounds = _sort(rows)
    days, path_ids, sources, views = (rows[name].to_numpy()[order] for name in ("day", "path_id", "source", "views"))
    path_ids = block.path_ids(index)[path_ids]
    slices = map(slice, bounds[:-1], bounds[1:])
    path_ids, views = (each.astype(np.min_scalar_type(each.max(initial=0))) for each in (path_ids, views))
    return MonthReads(dict(zip(readers, slices, strict=True)), days, path_ids, sources, views)


def _of_hits(hits: pa.Table, filters: Filters, block: ProjectBlock) -> Reads:
    """Return the reads of rows of `edge_rows.read`. Paths that have no id are added to the block."""
    equal = filters.agents | {"traffic": "ai"} | ({} if filters.source is None else {"source": filters.source})
    for name, text in equal.items():
        hits = hits.filter(pc.field(name) == text)
    return _reads(hits, hits_files.ids(hits["path"], block.paths), np.ones(hits.num_rows, np.int64))


def _read(cursor: duckdb.DuckDBPyConnection, rows: str, scope: Scope, block: ProjectBlock) -> Reads:
    """Read the reads in rows of `hits`. Paths that have no id are added to the block."""
    condition, values = scope.filters.condition()
    times = {"start": scope.time_range.start, "end": scope.time_range.end}
    sql = _READ.format(rows=rows, condition=condition)
    read = cursor.sql(sql, params={"project": scope.project, **times, **values}).to_arrow_table()
    return _reads(read, hits_files.ids(read["path"], block.paths), read["views"].to_numpy())


def _reads(rows: pa.Table, path_ids: Array, views: Array) -> Reads:
    readers, order, bounds = _sort(rows)
    slices = map(slice, bounds[:-1], bounds[1:])
    ids, views = path_ids.astype(np.uint32)[order], views[order]
    return Reads({reader: (ids[each], views[each]) for reader, each in zip(readers, slices, strict=True)})


def _sort(rows: pa.Table) -> tuple[list[Reader], Array, Array]:
    """Return the readers of rows, the stable order of the rows by reader, and the bounds of each reader in it."""
    columns = [encoded(rows[name]) for name in _COLUMNS]
    codes = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        codes = codes * (len(column.dictionary) + 1) + pc.fill_null(column.indices, -1).to_numpy() + 1
    order = np.argsort(codes, kind="stable")
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    names = rows.select(_COLUMNS).take(order[firsts]).to_pylist()
    return [tuple(name.values()) for name in names], order, np.append(firsts, rows.num_rows)


def _count(reads: Sequence[Reads], column: int, chosen: Selection) -> dict[str, int]:
    """Return the number of distinct chosen paths with views of each value in a column of the readers."""
    items: defaultdict[str, list[tuple[Array, Array]]] = defaultdict(list)
    for each in reads:
        for reader, ids_and_views in each.of_reader.items():
            if (value := reader[column]) is not None:
                items[value].append(ids_and_views)
    counts = {}
    for value in sorted(items):
        ids, views = (np.concatenate(each) for each in zip(*items[value], strict=True))
        if chosen.bounds is not None:
            is_chosen = chosen.has(ids)
            ids, views = ids[is_chosen], views[is_chosen]
        counts[value] = _count_distinct(ids, views)
    return {value: number for value, number in counts.items() if number}


def _count_distinct(ids: Array, views: Array) -> int:
    """Return the number of distinct ids whose views add up to more than 0. No sum is negative.

    An array for all ids takes a tenth of the time of a sort.
    """
    is_read = np.zeros(int(ids.max(initial=0)) + 1, bool)
    is_read[ids] = True
    subtracted = np.unique(ids[views < 0])
    if subtracted.size:
        is_subtracted = np.zeros(is_read.size, bool)
        is_subtracted[subtracted] = True
        rows = np.flatnonzero(is_subtracted[ids])
        sums = np.bincount(np.searchsorted(subtracted, ids[rows]), views[rows])
        is_read[subtracted[sums == 0]] = False
    return int(np.count_nonzero(is_read))
