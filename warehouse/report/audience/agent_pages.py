"""Number of distinct paths that each AI agent, operator or purpose read in the last days of a range.

The whole UTC days of the range are read from rollups. At 8 million hits in a month that takes 60 ms of processor time,
and a year 1.1 s: the range is limited to DAYS.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks import hits_files, selection
from warehouse.blocks.cumulative import Array
from warehouse.blocks.project import ProjectBlock
from warehouse.encoding import encoded
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import engine
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.report.filters import Filters
from warehouse.report.hit_counts import Scope, cut_days, whole_days
from warehouse.rollups.coverage import Coverage, Part
from warehouse.rollups.schema import SOURCES, TRAFFIC

DAYS = 32
"""Maximum number of UTC days that are read: a month in any time zone."""
By = Literal["agent", "operator", "purpose"]
"""Columns of readers by which paths are counted."""
_COLUMNS = ("agent", "operator", "purpose")
_READ = """
SELECT DISTINCT agent, operator, purpose, path
FROM {rows}
WHERE project_id = $project AND traffic = 'ai' AND ts >= $start AND ts < $end AND {condition}
"""
_READ_ROLLUP = """
SELECT DISTINCT agent, operator, purpose, path_id
FROM {rows}
WHERE project_id = $project AND traffic = $traffic AND day IN (SELECT unnest($days::UTINYINT[])) AND {condition}
"""
Reader = tuple[str | None, ...]
"""Agent, operator and purpose of a hit."""


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """Distinct ids of the paths that each reader read."""

    paths: Mapping[Reader, Array]

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.paths.values())


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
        block, key = self._block(coverage, scope.project)
        reads = [self._read_hot(snapshot.hot, scope, block)]
        for index, days in _days_by_month(block.parts, scope.time_range):
            read = partial(self._read_rollup, index, days, scope.filters, block)
            reads.append(self._cached(("agent pages", scope.filters, block, index, days), read, key))
        if files := _hits_to_read(snapshot.files, coverage, scope.time_range):
            names = tuple(file.path for file in files)
            read = partial(self._read_files, files, scope, block)
            reads.append(self._cached(("agent pages", scope, block, names), read, key))
        self._cached.put(key, block)  # the block may have grown by the paths of the hits
        return _count(reads, _COLUMNS.index(by))

    def _read_rollup(self, index: int, days: tuple[int, ...], filters: Filters, block: ProjectBlock) -> Reads:
        """Read some days of a month."""
        equal: dict[str, object] = {**filters.agents}
        if filters.source is not None:
            equal["source"] = SOURCES.index(filters.source) if filters.source in SOURCES else None
        sql = _READ_ROLLUP.format(
            rows=engine.parquet_at([str(block.parts[index].rollup.agent_paths)]),
            condition=" AND ".join(["true", *(f"{name} = ${name}" for name in equal)]),
        )
        values = {"project": block.project, "traffic": TRAFFIC.index("ai"), "days": list(days), **equal}
        with self._database.cursor() as cursor:
            pairs = cursor.sql(sql, params=values).to_arrow_table()
        path_ids = block.path_ids(index)[pairs["path_id"].to_numpy()]
        is_chosen = selection.select(block.paths, filters.path_bounds, None, TRAFFIC).has(path_ids)
        return _reads(pairs.filter(pa.array(is_chosen)), path_ids[is_chosen])

    def _read_files(self, files: Sequence[File], scope: Scope, block: ProjectBlock) -> Reads:
        with self._database.cursor() as cursor:
            return _read(cursor, engine.rows(HITS_TABLE, files), scope, block)

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


def _hits_to_read(files: Sequence[File], coverage: Coverage, time_range: TimeRange) -> list[File]:
    """Return the uncovered files of the whole days in a range, and all files of the days that the range cuts."""
    first, end = whole_days(time_range)
    cut = cut_days(time_range)
    uncovered = [file for file in coverage.uncovered if first <= file.partition < end]
    return uncovered + [file for file in files if file.partition in cut]


def _read(cursor: duckdb.DuckDBPyConnection, rows: str, scope: Scope, block: ProjectBlock) -> Reads:
    """Read the distinct pairs of rows of `hits`. Paths that have no id are added to the block."""
    condition, values = scope.filters.condition()
    times = {"start": scope.time_range.start, "end": scope.time_range.end}
    sql = _READ.format(rows=rows, condition=condition)
    pairs = cursor.sql(sql, params={"project": scope.project, **times, **values}).to_arrow_table()
    return _reads(pairs, hits_files.ids(pairs["path"], block.paths))


def _reads(pairs: pa.Table, path_ids: Array) -> Reads:
    """Return the path ids of each reader, from the readers and path ids of distinct pairs."""
    columns = [encoded(pairs[name]) for name in _COLUMNS]
    codes = np.zeros(pairs.num_rows, np.int64)
    for column in columns:
        codes = codes * (len(column.dictionary) + 1) + pc.fill_null(column.indices, -1).to_numpy() + 1
    order = np.argsort(codes, kind="stable")
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    names = pairs.select(_COLUMNS).take(order[firsts]).to_pylist()
    readers = (tuple(name.values()) for name in names)
    of_reader = np.split(path_ids.astype(np.uint32)[order], firsts[1:])
    return Reads(dict(zip(readers, of_reader, strict=False)))


def _count(reads: Sequence[Reads], column: int) -> dict[str, int]:
    """Return the number of distinct path ids of each value in a column of the readers."""
    ids: defaultdict[str, list[Array]] = defaultdict(list)
    for each in reads:
        for reader, path_ids in each.paths.items():
            if (value := reader[column]) is not None:
                ids[value].append(path_ids)
    return {value: _count_distinct(ids[value]) for value in sorted(ids)}


def _count_distinct(ids: Sequence[Array]) -> int:
    """Return the number of distinct ids in arrays. An array for all ids takes a tenth of the time of a sort."""
    if len(ids) == 1:
        return int(ids[0].size)
    is_read = np.zeros(max(int(each.max()) for each in ids) + 1, bool)
    for each in ids:
        is_read[each] = True
    return int(np.count_nonzero(is_read))
