"""Paths of each project, ranked by the views of all months, with cumulative counts: for pages of the most viewed paths.

A page reads the first ranks until no other path can be on it. The files are derived from the rollups that `ranked.json`
names, and count only for a snapshot that uses these rollups:

- `months.parquet`: a row for each path, set of sources and traffic, with the views up to the end of each month.
- `YYYY-MM.parquet`: the same rows, in the same order, with the views of a month up to the end of each day.

The first path of a project has the rank 1. The rows of rank 0 have no path: they count all paths of the project.
"""

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cachetools import LRUCache, cached

from warehouse.lake import roots
from warehouse.lake.roots import Root
from warehouse.rollups import catalog, cubes
from warehouse.rollups.catalog import LAYOUT, Part
from warehouse.rollups.cubes import write_rows

FOLDER, RECORD, MONTHS = "ranked", "ranked.json", "months.parquet"
STEPS = (256, 2_048, 16_384)
"""Numbers of first ranks that a page reads, until all are read."""
_LAYOUT = f"{LAYOUT} 2"
GROUP_ROWS = 8_192
"""Number of rows of a row group: the first ranks of a project are in few."""
SUMS_MAX = 3_000_000
"""Number of cumulative sums that DuckDB has in memory at a time, without spilling: 32 bytes each."""
_TOTALS = """
SELECT project_id, path, coalesce(sum(views) FILTER (traffic <> 'bot'), 0)::BIGINT AS total
FROM {cells} WHERE day_of_month = 0 GROUP BY project_id, path
"""
_RANKS = """
SELECT *, (row_number() OVER (PARTITION BY project_id ORDER BY total DESC, path))::UINTEGER AS rank FROM {totals}
"""
_IN_ORDER = """
FROM {joined} UNION ALL BY NAME
SELECT project_id, 0::UINTEGER AS rank, NULL AS path, sources, traffic, {sums} FROM {joined} GROUP BY ALL
ORDER BY project_id, rank, sources, traffic
"""
_NUMBER = "SELECT approx_count_distinct(hash(project_id, path, sources, traffic)) FROM {cells}"
_CUMULATED = """
SELECT project_id, rank, path, sources, traffic, {sums} FROM {cells} JOIN {ranks} USING (project_id, path)
WHERE hash(path) % {parts} = {part} GROUP BY ALL
"""
_BOUNDS = """
SELECT project_id, {bounds}
FROM (SELECT project_id, rank, sum({views}) AS views FROM {rows} WHERE rank > 0 AND traffic <> 'bot' GROUP BY ALL)
GROUP BY project_id
"""


METADATA_FACTOR = 8
"""Memory of the metadata of a file, as a multiple of their size in the file: 5 MB for 165 row groups of 36 columns."""
_METADATA = LRUCache[str, "tuple[pq.FileMetaData, tuple[_Group, ...]]"](
    32 * 1024 * 1024, lambda each: METADATA_FACTOR * each[0].serialized_size
)


class Record(msgspec.Struct, frozen=True):
    """Content of `ranked.json`: the folders of the rollups by month, and the sizes of the Parquet files in bytes.

    `bounds` has a list for each project and step, as far as the project has paths after it: the most views of any of
    these paths in each month, and in all months.
    """

    layout: str
    rollups: dict[str, str]
    steps: list[int]
    bounds: dict[str, list[list[int]]]
    sizes: dict[str, int]


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking that can be read."""

    folder: Root
    record: Record

    @property
    def months(self) -> str:
        """Return the path of the file of months."""
        return str(self.folder / MONTHS)

    def days(self, month: str) -> str:
        """Return the path of the file of the days of a month."""
        return str(self.folder / f"{month}.parquet")

    def read(self, path: str, project: str, end: int | None, columns: Sequence[str]) -> pa.Table:
        """Return the rows of a project in one of the files whose rank is below `end`, in the order of their ranks."""
        metadata, bounds = _metadata(path)
        groups = [number for number, each in enumerate(bounds) if each.may_have(project, end)]
        names, size = ["project_id", "rank", *columns], GROUP_ROWS if end is None else min(GROUP_ROWS, 10 * end)
        read = list[pa.RecordBatch]()
        with pq.ParquetFile(roots.at(path).open_parquet(), metadata=metadata, read_dictionary=["path"]) as file:
            for batch in file.iter_batches(size, groups, names, use_threads=False):
                is_read = pc.equal(batch["project_id"], project)
                if end is not None:
                    is_read = pc.and_(is_read, pc.less(batch["rank"], pa.scalar(end, pa.uint32())))
                if pc.any(is_read).as_py():
                    read.append(batch.filter(is_read))
                elif read:
                    break
        return pa.Table.from_batches(read) if read else file.schema_arrow.empty_table().select(names)

    def rows(self, project: str) -> int:
        """Return the number of rows of months in the row groups that may have rows of a project."""
        metadata, bounds = _metadata(self.months)
        groups = (number for number, each in enumerate(bounds) if each.may_have(project, None))
        return sum(metadata.row_group(number).num_rows for number in groups)

    def has(self, part: Part) -> bool:
        """Return whether the ranking counts the rollup of a part, all of whose days are valid."""
        return part.is_whole and self.record.rollups.get(part.rollup.month) == part.rollup.folder.name

    @property
    def nbytes(self) -> int:
        return 200 * (len(self.record.bounds) + 1) * (len(self.record.rollups) + 1)


def find(root: Root) -> Ranking | None:
    """Return the newest complete ranking, or None."""
    rankings = [ranking for folder in _folders(root) if (ranking := _read(folder))]
    return max(rankings, key=lambda each: roots.modified_s(each.folder / RECORD), default=None)


def write(root: Root, database: duckdb.DuckDBPyConnection, parts: Sequence[Part], steps: Sequence[int] = STEPS) -> None:
    """Write the ranking of the largest rollup of each month, if it is not the newest one.

    The caller has the lock of the rollups.
    """
    largest = {part.rollup.month: part for part in reversed(parts) if part.is_whole}
    ranked = [largest[month] for month in sorted(largest)]
    rollups = {part.rollup.month: part.rollup.folder.name for part in ranked}
    newest = find(root)
    if newest and newest.record.rollups == rollups:
        return
    if not rollups:
        if newest:  # it counts only rows that are gone
            (newest.folder / RECORD).unlink()
            catalog.change_written_key(root)
        return
    folder = root / catalog.FOLDER / FOLDER / str(uuid.uuid4())
    try:
        with folder.new_folder() as work, database.cursor() as cursor:
            cursor.execute("SET threads = 1")  # with more, DuckDB fails to sort 1M paths of 200 characters in 256 MB
            bounds = _write_files(cursor, work, ranked, steps)
            sizes = {path.name: path.stat().st_size for path in work.iterdir()}
        (folder / RECORD).write(msgspec.json.encode(Record(_LAYOUT, rollups, [*steps], bounds, sizes)))
    except BaseException:
        folder.remove_folder()
        raise
    catalog.change_written_key(root)


def remove_unused(root: Root, old_s: float) -> None:
    """Mark rankings that no new reader uses, and remove those marked before `old_s` (seconds since 1970).

    The newest ranking is in use, unless a rollup that it counts was removed, and with it, perhaps, a project. Readers
    may use another one until they notice that, also on other nodes.
    """
    newest = find(root)
    if newest and any(
        not (catalog.month_folder(root, month) / name / catalog.COVERAGE).exists()
        for month, name in newest.record.rollups.items()
    ):
        (newest.folder / RECORD).unlink(missing_ok=True)  # which a cache may still have
        catalog.change_written_key(root)
        newest = None
    for folder in _folders(root):
        catalog.vacuum_folder(folder, old_s, is_used=newest is not None and folder == newest.folder)


def _folders(root: Root) -> list[Root]:
    folder = root / catalog.FOLDER / FOLDER
    return [folder / name for name in folder.folders()]


def _read(folder: Root) -> Ranking | None:
    with suppress(FileNotFoundError, msgspec.DecodeError):
        record = msgspec.json.decode((folder / RECORD).read_immutable(), type=Record)
        sizes = {name: stat.st_size for name, stat in folder.files()}
        if record.layout == _LAYOUT and record.sizes.items() <= sizes.items():
            return Ranking(folder, record)
    return None


def _write_files(
    cursor: duckdb.DuckDBPyConnection, folder: Path, parts: Sequence[Part], steps: Sequence[int]
) -> dict[str, list[list[int]]]:
    """Write the files, and return the bounds of each project."""
    with TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        files = {part.rollup.month: part.rollup.folder / "paths.parquet" for part in parts}
        totals = write_rows(cursor, [_TOTALS.format(cells=cubes.parquet(*files.values()))], scratch / "totals")
        ranks = write_rows(cursor, [_RANKS.format(totals=cubes.parquet(totals))], scratch / "ranks")
        until_days = {f"until_{day}": f"day_of_month <= {day}" for day in range(1, 32)}
        for month, paths in files.items():
            _write(cursor, cubes.days(paths), until_days, ranks, folder / f"{month}.parquet")
        of_months = (
            f"SELECT *, '{month}' AS month FROM {cubes.parquet(paths)} WHERE day_of_month = 0"
            for month, paths in files.items()
        )
        until_months = {month: f"month <= '{month}'" for month in files}
        _write(cursor, f"({' UNION ALL '.join(of_months)})", until_months, ranks, folder / MONTHS)
        columns = {folder / f"{month}.parquet": "until_31" for month in files} | {folder / MONTHS: f'"{max(files)}"'}
        return _find_bounds(cursor, columns, steps)


def _write(cursor: duckdb.DuckDBPyConnection, cells: str, until: Mapping[str, str], ranks: Path, file: Path) -> None:
    """Write cumulative sums of cells in the order of their ranks. `until` has the names and conditions of the sums.

    DuckDB spills a sort, but fails with many sums that exceed its memory: they are computed for some paths at a time.
    """
    sums = ", ".join(f'coalesce(sum(views) FILTER ({each}), 0)::UINTEGER AS "{name}"' for name, each in until.items())
    ((groups,),) = cursor.execute(_NUMBER.format(cells=cells)).fetchall()
    parts = 1 + groups * len(until) // SUMS_MAX
    selects = [
        _CUMULATED.format(sums=sums, cells=cells, ranks=cubes.parquet(ranks), parts=parts, part=part)
        for part in range(parts)
    ]
    joined = cubes.parquet(write_rows(cursor, selects, ranks.with_name("joined")))
    sums = ", ".join(f'sum("{name}")::BIGINT AS "{name}"' for name in until)
    write_rows(cursor, [_IN_ORDER.format(joined=joined, sums=sums)], file, GROUP_ROWS)


def _find_bounds(
    cursor: duckdb.DuckDBPyConnection, columns: Mapping[Path, str], steps: Sequence[int]
) -> dict[str, list[list[int]]]:
    """Return `Record.bounds` from files, each with its column of views."""
    values = ", ".join(f"max(views) FILTER (rank >= {step})" for step in steps)
    of_files = [
        {project: bounds for project, *bounds in cursor.execute(sql).fetchall()}
        for file, views in columns.items()
        for sql in [_BOUNDS.format(bounds=values, views=views, rows=cubes.parquet(file))]
    ]
    return {
        project: [
            [int(of_file.get(project, [0] * len(steps))[number] or 0) for of_file in of_files]
            for number, bound in enumerate(bounds)
            if bound is not None
        ]
        for project, bounds in of_files[-1].items()
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """The projects and the first rank of a row group."""

    first: str
    last: str
    rank: int

    def may_have(self, project: str, end: int | None) -> bool:
        """Return whether the row group may have rows of a project below a rank."""
        has_only = self.first == self.last
        return self.first <= project <= self.last and not (has_only and end is not None and self.rank >= end)


@cached(_METADATA, lock=Lock())
def _metadata(path: str) -> tuple[pq.FileMetaData, tuple[_Group, ...]]:
    """Return the metadata of a file, which is never changed, and its row groups."""
    metadata, groups = pq.read_metadata(roots.at(path).open_parquet()), list[_Group]()
    for number in range(metadata.num_row_groups):
        project, rank = (metadata.row_group(number).column(column).statistics for column in range(2))
        groups.append(_Group(project.min, project.max, rank.min))
    return metadata, tuple(groups)
