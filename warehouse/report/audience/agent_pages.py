"""Number of distinct paths that each AI agent, operator or purpose read in the last days of a range.

No rollup has paths by agent: up to a month of `hits` is read. The pairs of the days before the newest one are cached
until their files change; only the newest day is read again when hits arrive.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks import hits_files
from warehouse.blocks.cumulative import Array
from warehouse.blocks.project import ProjectBlock
from warehouse.encoding import encoded
from warehouse.lake.delta_table import HITS_TABLE, File
from warehouse.query import engine
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.report.hit_counts import Scope, cut_days, whole_days
from warehouse.rollups.coverage import Coverage

DAYS = 32
"""Maximum number of UTC days that are read: a month in any time zone."""
By = Literal["agent", "operator", "purpose"]
"""Columns of readers by which paths are counted."""
_COLUMNS = ("agent", "operator", "purpose")
_READ = """
SELECT DISTINCT agent, operator, purpose, path
FROM {rows}
WHERE project_id = $project AND traffic = 'ai' AND {condition}
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
        block, key = self._block(self._coverage(snapshot), scope.project)
        reads = [self._read_hot(snapshot.hot, scope, block)]
        for files, is_whole in filter(_has_files, _groups(snapshot.files, scope.time_range)):
            names = tuple(file.path for file in files)
            read = partial(self._read_files, files, scope, block, is_whole=is_whole)
            times = None if is_whole else scope.time_range
            reads.append(self._cached(("agent pages", scope.filters, times, block, names), read, key))
        self._cached.put(key, block)  # the block may have grown by the paths of the hits
        return _count(reads, _COLUMNS.index(by))

    def _read_files(self, files: Sequence[File], scope: Scope, block: ProjectBlock, *, is_whole: bool) -> Reads:
        with self._database.cursor() as cursor:
            return _read(cursor, engine.rows(HITS_TABLE, files), scope, block, is_whole=is_whole)

    def _read_hot(self, hot: pa.Table, scope: Scope, block: ProjectBlock) -> Reads:
        with self._database.cursor() as cursor:
            cursor.register("hot", hot)
            return _read(cursor, "hot", scope, block, is_whole=False)


_Group = tuple[tuple[File, ...], bool]
"""Files that are read by one query, and whether all of their hits are within the range."""


def _groups(files: Sequence[File], time_range: TimeRange) -> tuple[_Group, ...]:
    """Return the files of the whole days before the newest day, of the newest day, and of partial days."""
    first, end = whole_days(time_range)
    whole = [file for file in files if first <= file.partition < end]
    newest = max((file.partition for file in whole), default="")
    older = tuple(file for file in whole if file.partition < newest)
    of_newest = tuple(file for file in whole if file.partition == newest)
    cut = cut_days(time_range)
    return (older, True), (of_newest, True), (tuple(file for file in files if file.partition in cut), False)


def _has_files(group: _Group) -> bool:
    return bool(group[0])


def _read(cursor: duckdb.DuckDBPyConnection, rows: str, scope: Scope, block: ProjectBlock, *, is_whole: bool) -> Reads:
    """Read the distinct pairs of rows of `hits`. Paths that have no id are added to the block.

    `is_whole`: all rows are within the range of the scope. To compare their times would take a sixth of the query.
    """
    condition, values = scope.filters.condition()
    if not is_whole:
        condition = f"{condition} AND ts >= $start AND ts < $end"
        values |= {"start": scope.time_range.start, "end": scope.time_range.end}
    sql = _READ.format(rows=rows, condition=condition)
    pairs = cursor.sql(sql, params={"project": scope.project, **values}).to_arrow_table()
    columns = [encoded(pairs[name]) for name in _COLUMNS]
    codes = np.zeros(pairs.num_rows, np.int64)
    for column in columns:
        codes = codes * (len(column.dictionary) + 1) + pc.fill_null(column.indices, -1).to_numpy() + 1
    order = np.argsort(codes, kind="stable")
    path_ids = hits_files.ids(pairs["path"], block.paths).astype(np.uint32)[order]
    firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    names = pairs.select(_COLUMNS).take(order[firsts]).to_pylist()
    readers = (tuple(name.values()) for name in names)
    return Reads(dict(zip(readers, np.split(path_ids, firsts[1:]), strict=False)))


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
