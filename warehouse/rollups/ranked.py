"""Paths of each project, ranked by the views of all months, with cumulative counts: for pages of the most viewed paths.

A page reads the first ranks until no other path can be on it. The files are derived from the rollups that `ranked.json`
names, and count only for a snapshot that uses these rollups:

- `months.parquet`: a row for each path, set of sources and traffic, with the views up to the end of each month.
- `YYYY-MM.parquet`: the same rows, in the same order, with the views of a month up to the end of each day.
"""

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import msgspec

from warehouse.lake import roots
from warehouse.lake.roots import Root
from warehouse.rollups import catalog, cubes
from warehouse.rollups.catalog import LAYOUT, Part
from warehouse.rollups.rows import write_rows

FOLDER, RECORD, MONTHS = "ranked", "ranked.json", "months.parquet"
STEPS = (1_024, 16_384)
"""Numbers of first ranks that a page reads, until all are read."""
GROUP_ROWS = 8_192
"""Number of rows of a row group: the first ranks of a project are in few."""
SUMS_MAX = 3_000_000
"""Number of cumulative sums that DuckDB has in memory at a time, without spilling: 32 bytes each."""
_TOTALS = """
SELECT project_id, path, coalesce(sum(views) FILTER (traffic <> 'bot'), 0)::BIGINT AS total
FROM {cells} WHERE day_of_month = 0 GROUP BY project_id, path
"""
_RANKS = """
SELECT *, (row_number() OVER (PARTITION BY project_id ORDER BY total DESC, path) - 1)::UINTEGER AS rank FROM {totals}
"""
_NUMBER = "SELECT approx_count_distinct(hash(project_id, path, sources, traffic)) FROM {cells}"
_CUMULATED = """
SELECT project_id, rank, path, sources, traffic, {sums} FROM {cells} JOIN {ranks} USING (project_id, path)
WHERE hash(path) % {parts} = {part} GROUP BY ALL
"""
_BOUNDS = """
SELECT project_id, list(total ORDER BY rank) FROM {ranks} WHERE rank IN {steps} GROUP BY project_id
"""


class Record(msgspec.Struct, frozen=True):
    """Content of `ranked.json`: the folders of the rollups by month, and the sizes of the Parquet files in bytes.

    `bounds` has for each project the views of the paths at the ranks `steps`, as far as it has them: no later path has
    more.
    """

    layout: str
    rollups: dict[str, str]
    steps: list[int]
    bounds: dict[str, list[int]]
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

    def has(self, part: Part) -> bool:
        """Return whether the ranking counts the rollup of a part, all of whose days are valid."""
        return part.is_whole and self.record.rollups.get(part.rollup.month) == part.rollup.folder.name

    @property
    def nbytes(self) -> int:
        return 200 * (len(self.record.bounds) + len(self.record.rollups))


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
            bounds = _write_files(cursor, work, ranked, steps)
            sizes = {path.name: path.stat().st_size for path in work.iterdir()}
        (folder / RECORD).write(msgspec.json.encode(Record(LAYOUT, rollups, [*steps], bounds, sizes)))
    except BaseException:
        folder.remove_folder()
        raise
    catalog.change_written_key(root)


def remove_unused(root: Root, old_s: float) -> None:
    """Remove the folders that no reader uses, if they were replaced or left before `old_s` (seconds since 1970).

    The newest ranking is in use, unless a rollup that it counts was removed, and with it, perhaps, a project. Readers
    may use the ranking before it until they notice the newest.
    """
    newest = find(root)
    if newest and any(
        not (catalog.month_folder(root, month) / name / catalog.COVERAGE).exists()
        for month, name in newest.record.rollups.items()
    ):
        (newest.folder / RECORD).unlink()
        catalog.change_written_key(root)
        newest = find(root)
    replaced_s = roots.modified_s(newest.folder / RECORD) if newest else 0
    for folder in _folders(root):
        written_s = max([roots.modified_s(folder), *(stat.st_mtime for _, stat in folder.files())])
        is_replaced = (folder / RECORD).exists()
        if (newest is None or folder != newest.folder) and (replaced_s if is_replaced else written_s) <= old_s:
            folder.remove_folder()


def _folders(root: Root) -> list[Root]:
    folder = root / catalog.FOLDER / FOLDER
    return [folder / name for name in folder.folders()]


def _read(folder: Root) -> Ranking | None:
    with suppress(FileNotFoundError, msgspec.DecodeError):
        record = msgspec.json.decode((folder / RECORD).read_immutable(), type=Record)
        sizes = {name: stat.st_size for name, stat in folder.files()}
        if record.layout == LAYOUT and record.sizes.items() <= sizes.items():
            return Ranking(folder, record)
    return None


def _write_files(
    cursor: duckdb.DuckDBPyConnection, folder: Path, parts: Sequence[Part], steps: Sequence[int]
) -> dict[str, list[int]]:
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
        bounds = cursor.execute(_BOUNDS.format(ranks=cubes.parquet(ranks), steps=(*steps, -1))).fetchall()
        return dict(bounds)


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
    joined = write_rows(cursor, selects, ranks.with_name("joined"))
    write_rows(cursor, [f"FROM {cubes.parquet(joined)} ORDER BY project_id, rank, sources, traffic"], file, GROUP_ROWS)
