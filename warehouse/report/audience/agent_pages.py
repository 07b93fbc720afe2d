"""Number of distinct paths that each AI agent, operator or purpose read in the last days of a range.

The whole UTC days that are nearest to the range are counted from rollups, of which a month of 8 million hits is read in
60 ms of processor time. The range is limited to DAYS. Hits at its edges are added to those of the days, or subtracted
from them, and a path counts if its sum is above 0.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks import hits_files, selection
from warehouse.blocks.cumulative import Array
from warehouse.blocks.months import DAYS as DAYS_OF_A_MONTH
from warehouse.blocks.months import split_views
from warehouse.blocks.project import ProjectBlock
from warehouse.blocks.selection import Selection
from warehouse.control import policy
from warehouse.control.policy import Policy, Span
from warehouse.encoding import encoded
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import edge_rows, engine
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange, round_to_days
from warehouse.report.dimensions.count import choose
from warehouse.report.dimensions.rows import column_of, distinct, narrow
from warehouse.report.filters import Filters
from warehouse.report.hit_counts import Scope
from warehouse.rollups import sorted_rows
from warehouse.rollups.coverage import Coverage, Part
from warehouse.rollups.schema import SOURCES, TRAFFIC

DAYS = 32
"""Maximum number of UTC days that are read: a month in any time zone."""
By = Literal["agent", "operator", "purpose"]
"""Columns of an agent key by which paths are counted."""
_COLUMNS = ("agent", "operator", "purpose")
_READ = """
SELECT agent, operator, purpose, path, count(*) AS views
FROM {rows}
WHERE project_id = $project AND traffic = 'ai' AND ts >= $start AND ts < $end AND {condition}
GROUP BY ALL
"""
_STORED = ("day", "path_id", "source", "traffic", "views")
AGENT_KEY_BYTES = 100
"""Memory of an agent key without its names, which are shared, in bytes."""
AgentKey = tuple[str | None, ...]
"""Agent, operator and purpose of a hit."""


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """Items of an agent key, path ids and their views. The views of a key or a path in several items add up.

    Views may be negative.
    """

    items: Sequence[tuple[AgentKey, Array, Array]]

    @property
    def nbytes(self) -> int:
        return sum(ids.nbytes + views.nbytes for _, ids, views in self.items)

    def times(self, sign: int) -> "Reads":
        return Reads([(agent_key, ids, views * sign) for agent_key, ids, views in self.items])


@dataclass(frozen=True, slots=True, eq=False)
class MonthReads:
    """Rows of the reads of a month: path ids and views, which are at most CELL_VIEWS_MAX.

    The rows of a group have one agent key, source and day. Groups are in this order; `ends` are the ends of their rows.
    A path with more views than CELL_VIEWS_MAX has several rows in a group.
    """

    agent_keys: Sequence[AgentKey]
    agent_ids: Array
    sources: Array
    days: Array
    ends: Array
    path_ids: Array
    views: Array

    @property
    def nbytes(self) -> int:
        groups = (self.agent_ids, self.sources, self.days, self.ends)
        return AGENT_KEY_BYTES * len(self.agent_keys) + sum(
            each.nbytes for each in (*groups, self.path_ids, self.views)
        )

    def on(self, days: tuple[int, ...], filters: Filters, applied: Policy) -> Reads:
        """Return the reads of some days of the month that match the filters, without that by path.

        `applied` is the source policy of the days.
        """
        counted = [each for each in SOURCES if filters.source in {None, each} and policy.counts(applied, each, "ai")]
        sources = tuple(SOURCES.index(each) for each in counted)
        wanted = [filters.agents.get(name) for name in _COLUMNS]
        is_of_agent = [
            all(text in (None, value) for text, value in zip(wanted, agent_key, strict=True))
            for agent_key in self.agent_keys
        ]
        is_wanted = np.isin(self.days, days) & np.array(is_of_agent, bool)[self.agent_ids]
        is_wanted &= np.isin(self.sources, sources)
        return Reads([*self._items(np.flatnonzero(is_wanted))])

    def _items(self, groups: Array) -> Iterator[tuple[AgentKey, Array, Array]]:
        """Yield the rows of groups. Successive groups of an agent key are one item."""
        starts = np.concatenate([[0], self.ends])
        is_first = (np.diff(groups, prepend=-2) != 1) | (np.diff(self.agent_ids[groups], prepend=-1) != 0)
        for run in np.split(groups, np.flatnonzero(is_first)[1:]) if groups.size else ():
            rows = slice(starts[run[0]], starts[run[-1] + 1])
            yield self.agent_keys[self.agent_ids[run[0]]], self.path_ids[rows], self.views[rows]


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
        if "ai" not in scope.filters.selected_traffic:
            return {}
        coverage = self._coverage(snapshot)
        if scope.filters.verification is not None:
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
            for span in policy.spans(scope.filters.policy, days.start.date(), days.end.date()):
                for index, numbers in _days_by_month(block.parts, span):
                    reads.append(self._month(index, block, key).on(numbers, scope.filters, span.policy))
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
        if scope.filters.verification is not None:
            return self._files(files, scope, block, key)
        hits = edge_rows.read(self._database, self._cached, files, scope.project, edge)
        if hits is None:
            return self._files(files, scope, block, key)
        return self._cached(
            _files_key(files, scope, block), lambda: _of_hits(hits, scope.filters, block), key, evict_first=True
        )

    def _files(self, files: Sequence[File], scope: Scope, block: ProjectBlock, key: Hashable) -> Reads:
        read = partial(self._read_files, files, scope, block)
        return self._cached(_files_key(files, scope, block), read, key, evict_first=True)

    def _read_files(self, files: Sequence[File], scope: Scope, block: ProjectBlock) -> Reads:
        with engine.interruptible_cursor(self._database) as cursor:
            return _read(cursor, engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE), scope, block)

    def _read_hot(self, hot: pa.Table, scope: Scope, block: ProjectBlock) -> Reads:
        with engine.interruptible_cursor(self._database) as cursor:
            cursor.register("hot", hot)
            return _read(cursor, "hot", scope, block)


def _files_key(files: Sequence[File], scope: Scope, block: ProjectBlock) -> Hashable:
    """Return the key of the reads in files, which is the same for each `By`: a page counts the reads by two of them."""
    return "agent pages", scope, block, tuple(file.path for file in files)


def _days_by_month(parts: Sequence[Part], span: Span) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the valid days of the month that are in a span, by the index of the month."""
    first, end = span.start.isoformat(), span.end.isoformat()
    for index, part in enumerate(parts):
        if days := tuple(sorted(int(day[-2:]) for day in part.days if first <= day < end)):
            yield index, days


def _read_month(index: int, block: ProjectBlock) -> MonthReads:
    """Read the reads of all agents in a month."""
    file = block.parts[index].rollup.agent_paths
    is_by_ai = pc.field("traffic") == TRAFFIC.index("ai")
    rows = sorted_rows.read(file, {"project_id": block.project}, (*_STORED, *_COLUMNS), _COLUMNS, is_by_ai)
    agent_keys, codes = _agent_keys(rows)
    days, sources, path_ids, views = (rows[name].to_numpy() for name in ("day", "source", "path_id", "views"))
    del rows
    codes = (codes * len(SOURCES) + sources) * (DAYS_OF_A_MONTH + 1) + days
    codes = narrow(codes)  # NumPy sorts 16-bit numbers in a tenth of the time of wider ones
    order = np.argsort(codes, kind="stable")
    cells, parts = split_views(views[order])
    order = order[cells]
    first = np.flatnonzero(np.diff(codes[order].astype(np.int64), prepend=-1))
    groups, days = np.divmod(codes[order[first]], DAYS_OF_A_MONTH + 1)
    agent_ids, sources = np.divmod(groups, len(SOURCES))
    return MonthReads(
        agent_keys,
        narrow(agent_ids),
        sources.astype(np.uint8),
        days.astype(np.uint8),
        np.append(first, order.size)[1:].astype(np.uint32),
        narrow(block.path_ids(index))[path_ids[order]],
        parts,
    )


def _of_hits(hits: pa.Table, filters: Filters, block: ProjectBlock) -> Reads:
    """Return the reads of rows of `edge_rows.read`. Paths that have no id are added to the block."""
    hits = choose(hits, replace(filters, path=None, traffic="ai"))
    return _reads(hits, hits_files.ids(hits["path"], block.paths), np.ones(hits.num_rows, np.int64))


def _read(cursor: duckdb.DuckDBPyConnection, rows: str, scope: Scope, block: ProjectBlock) -> Reads:
    """Read the reads in rows of `hits`. Paths that have no id are added to the block."""
    condition, values = scope.filters.condition()
    times = {"start": scope.time_range.start, "end": scope.time_range.end}
    sql = _READ.format(rows=rows, condition=condition)
    read = cursor.sql(sql, params={"project": scope.project, **times, **values}).to_arrow_table()
    return _reads(read, hits_files.ids(read["path"], block.paths), read["views"].to_numpy())


def _reads(rows: pa.Table, path_ids: Array, views: Array) -> Reads:
    agent_keys, codes = _agent_keys(rows)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(agent_keys) + 1)).tolist()
    ids, views = path_ids.astype(np.uint32)[order], views[order]
    slices = map(slice, bounds[:-1], bounds[1:])
    return Reads([(agent_key, ids[each], views[each]) for agent_key, each in zip(agent_keys, slices, strict=True)])


def _agent_keys(rows: pa.Table) -> tuple[list[AgentKey], Array]:
    """Return the distinct agent keys of rows, and the index of the agent key of each row."""
    columns = [column_of(encoded(rows[name])) for name in _COLUMNS]
    indices, codes = distinct([each.codes for each in columns])
    names = (column.at(each).to_pylist() for column, each in zip(columns, codes, strict=True))
    return [*zip(*names, strict=True)], indices


def _count(reads: Sequence[Reads], column: int, chosen: Selection) -> dict[str, int]:
    """Return the number of distinct chosen paths with views of each value in a column of the agent keys."""
    items: defaultdict[str, list[tuple[Array, Array]]] = defaultdict(list)
    for each in reads:
        for agent_key, ids, views in each.items:
            if (value := agent_key[column]) is not None:
                items[value].append((ids, views))
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
