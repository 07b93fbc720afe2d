"""First day on which AI read each of some paths.

The block of a project has the first month of each path. Only the rollups of these months are read.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.blocks.cumulative import Array
from warehouse.blocks.project import ProjectBlock
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.query import engine
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.report import hit_counts
from warehouse.rollups.coverage import Coverage
from warehouse.rollups.schema import TRAFFIC

PATHS_MAX = 10_000
"""Maximum number of paths of one call."""
_AI = TRAFFIC.index("ai")
_IN_ROLLUPS = """
SELECT path, min((month || '-01')::DATE + (day::INTEGER - 1)) AS day
FROM {files} JOIN wanted USING (month, path_id)
WHERE project_id = $project AND ai > 0 AND {days}
GROUP BY path
"""
_IN_HITS = """
SELECT path, min(ts::DATE) AS day
FROM {rows}
WHERE project_id = $project AND traffic = 'ai' AND path IN (SELECT unnest($paths::VARCHAR[]))
GROUP BY path
"""


class FirstDays:
    """First days of the paths of one process. Safe to call from several threads.

    The results of files are cached until the files change.
    """

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        cached: ResultCache,
        coverage: Callable[[HitsSnapshot], Coverage],
        block: Callable[[Coverage, str], tuple[ProjectBlock, Hashable]],
    ) -> None:
        """Create the reports. `coverage` returns the rollups for a snapshot, `block` the block of a project."""
        self._database, self._cached, self._coverage, self._block = database, cached, coverage, block

    def by_ai(self, snapshot: HitsSnapshot, project: str, paths: Collection[str]) -> dict[str, date]:
        """Return the UTC day of the first view by AI of each path that has one."""
        assert len(paths) <= PATHS_MAX
        listed = tuple(sorted(set(paths)))
        in_files = self._cached(
            ("first days", project, listed, snapshot.files_key),
            lambda: self._in_files(snapshot, project, listed),
            evict_first=True,
        )
        first: dict[str, date] = {}
        for rows in (in_files, self._in_hits("hot", project, listed, snapshot.hot)):
            for path, day in zip(rows["path"].to_pylist(), rows["day"].to_pylist(), strict=True):
                first[path] = min(day, first.get(path, day))
        return first

    def _in_files(self, snapshot: HitsSnapshot, project: str, paths: tuple[str, ...]) -> pa.Table:
        coverage = self._coverage(snapshot)
        files = coverage.uncovered
        rows = engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)
        return pa.concat_tables(
            [self._in_hits(rows, project, paths, snapshot.hot), *self._in_rollups(coverage, project, paths)]
        )

    def _in_rollups(self, coverage: Coverage, project: str, paths: tuple[str, ...]) -> Iterable[pa.Table]:
        block, _ = self._block(coverage, project)
        ids = block.paths.find(pa.array(paths, pa.string()))
        names, ids = np.array(paths, object)[ids >= 0], ids[ids >= 0]
        months = block.first_months(ids, _AI)
        indices = [int(index) for index in np.unique(months) if index >= 0]
        if not indices:
            return
        wanted = pa.concat_tables(
            [_wanted(block, index, names[months == index], ids[months == index]) for index in indices]
        )
        parts = [block.parts[index] for index in indices]
        valid = hit_counts.valid_days(Coverage(tuple(parts), ()), TimeRange())
        sql = _IN_ROLLUPS.format(
            files=engine.parquet_at(str(part.rollup.days) for part in parts), days=hit_counts.in_days(valid)
        )
        with engine.interruptible_cursor(self._database) as cursor:
            cursor.register("wanted", wanted)
            yield cursor.sql(sql, params={"project": project}).to_arrow_table()

    def _in_hits(self, rows: str, project: str, paths: tuple[str, ...], hot: pa.Table) -> pa.Table:
        values = {"project": project, "paths": list(paths)}
        with engine.interruptible_cursor(self._database) as cursor:
            cursor.register("hot", hot)
            return cursor.sql(_IN_HITS.format(rows=rows), params=values).to_arrow_table()


def _wanted(block: ProjectBlock, index: int, paths: Array, ids: Array) -> pa.Table:
    """Return the path ids in the rollup of a month: month, path and path_id."""
    month = block.parts[index].rollup.month
    path_ids = block.ids_in_rollup(index, ids).astype(np.uint32)
    return pa.table({"month": [month] * ids.size, "path": pa.array(paths, pa.string()), "path_id": path_ids})
