"""Write the rollup of a month, from its files of `hits` and, where it is valid, from the rollup before it.

Each statement of DuckDB spills what exceeds the memory limit, and its rows pass through this process in batches. The
rollup exists once its `coverage.json` does. Before, its folder is garbage: readers ignore it, and a vacuum removes it.
"""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import LakeUnreachable
from warehouse.lake import row_groups
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.rollups import counts, coverage, schema
from warehouse.rollups.coverage import Coverage, Part, Record, Rollup

OnStep = Callable[[str], None]
"""Function that is called with the name of each point (see STEPS) at which a crash would leave a different state."""
STEPS = (
    "before count",
    "before paths",
    "before days",
    "before agent paths",
    "before path views",
    "before dimensions",
    "before sync",
    "before coverage",
    "after coverage",
)

BATCH_ROWS = 8_192
"""Number of rows that DuckDB converts at a time. The longest paths take 17 MB."""
_ENCODINGS = {"path_id": "DELTA_BINARY_PACKED"}
"""Encodings of columns whose values are mostly distinct in a row group."""
_PLAIN = ("path", "path_id")
"""Columns without a dictionary."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The Parquet files of a rollup, which no reader uses before `commit`: their folder, and what they count."""

    folder: Root
    record: Record


def write(
    root: Root,
    database: duckdb.DuckDBPyConnection,
    month: str,
    files: Sequence[File],
    on_step: OnStep = lambda step: None,
    *,
    is_copied: bool = True,
) -> Rollup:
    """Write a rollup of all `files` of a month (YYYY-MM) of `hits`, and return it. At least one file is required.

    If `is_copied`, the valid days of the rollup that a reader would use are copied, and only other files are counted.
    """
    return commit(root, prepare(root, database, month, files, on_step, is_copied=is_copied), on_step)


def prepare(
    root: Root,
    database: duckdb.DuckDBPyConnection,
    month: str,
    files: Sequence[File],
    on_step: OnStep = lambda step: None,
    *,
    is_copied: bool = True,
) -> Prepared:
    """Write the Parquet files of a rollup into a new folder, and return them. Parameters: see `write`.

    Each call has a folder of its own: a repeated call does not meet the files of the first one.
    """
    chosen = coverage.choose(root, files) if is_copied else Coverage((), tuple(files))
    folder = coverage.month_folder(root, month) / str(uuid.uuid4())
    try:
        with folder.new_folder() as work:
            on_step("before count")
            with database.cursor() as cursor:
                _write_files(cursor, work, chosen, on_step)
            record = coverage.record_of(month, files, work)
            on_step("before sync")  # else a power loss could leave coverage.json without a file that it needs
    except BaseException:
        _discard(folder)
        raise
    return Prepared(folder, record)


def commit(root: Root, prepared: Prepared, on_step: OnStep = lambda step: None) -> Rollup:
    """Write the `coverage.json` of a rollup, so that readers use it, and return the rollup."""
    try:
        on_step("before coverage")
        (prepared.folder / coverage.COVERAGE).write(msgspec.json.encode(prepared.record))
    except BaseException:
        _discard(prepared.folder)
        raise
    on_step("after coverage")
    coverage.change_written_key(root)
    return coverage.read(prepared.folder)


def _discard(folder: Root) -> None:
    with suppress(OSError, LakeUnreachable):  # a vacuum removes the files that remain
        (folder / coverage.COVERAGE).unlink(missing_ok=True)  # first: with this file, readers use the others
        folder.remove_folder()


def _write_files(cursor: duckdb.DuckDBPyConnection, folder: Path, chosen: Coverage, on_step: OnStep) -> None:
    days, paths = folder / coverage.DAYS, folder / coverage.PATHS
    with TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        cells, sorted_paths = scratch / "cells", scratch / "sorted_paths"
        counted = _count(cursor, scratch / "paths", chosen, counts.count_paths, counts.copy_paths)
        on_step("before paths")
        _copy(cursor, counts.list_paths(counted), sorted_paths)
        _copy(cursor, counts.replace_paths(counted, sorted_paths), cells)
        on_step("before days")
        _copy(cursor, counts.days(cells), days, schema.DAYS)
        _copy(cursor, counts.month_totals(days, sorted_paths), paths, schema.PATHS)
        on_step("before agent paths")
        counted = _count(cursor, scratch / "agents", chosen, counts.count_agent_paths, counts.copy_agent_paths)
        _copy(cursor, counts.replace_paths(counted, sorted_paths), cells)
        _copy(cursor, counts.agent_paths(cells), folder / coverage.AGENT_PATHS, schema.AGENT_PATHS)
        on_step("before path views")
        _write_path_views(cursor, folder, scratch, chosen, sorted_paths)
    on_step("before dimensions")
    dimensions = counts.count_dimensions(chosen.uncovered, chosen.parts)
    _copy(cursor, dimensions, folder / coverage.DIMENSIONS, schema.DIMENSIONS)


def _write_path_views(
    cursor: duckdb.DuckDBPyConnection, folder: Path, scratch: Path, chosen: Coverage, paths: Path
) -> None:
    """Write the files of profiles and of page views by path. `paths` is the file of the month's paths."""
    profiles = folder / coverage.PROFILES
    counted = _count(cursor, scratch / "profiles", chosen, counts.count_profiles, counts.copy_profiles)
    _copy(cursor, counts.list_profiles(counted), profiles, schema.PROFILES)
    count, copy = partial(counts.count_path_views, profiles), partial(counts.copy_path_views, profiles)
    counted = _count(cursor, scratch / "views", chosen, count, copy)
    cells = scratch / "cells"
    _copy(cursor, counts.replace_paths(counted, paths), cells)
    _copy(cursor, counts.path_views(cells), folder / coverage.PATH_VIEWS, schema.PATH_VIEWS)


def _count(
    cursor: duckdb.DuckDBPyConnection,
    folder: Path,
    chosen: Coverage,
    count: Callable[[Sequence[File]], str],
    copy: Callable[[Part], str],
) -> list[Path]:
    """Write counts of the uncovered files, and of the valid days of each rollup, to one file each."""
    folder.mkdir()
    selects = [count(chosen.uncovered), *map(copy, chosen.parts)]
    files = [folder / str(number) for number in range(len(selects))]
    for select, file in zip(selects, files, strict=True):
        _copy(cursor, select, file)
    return files


def _copy(cursor: duckdb.DuckDBPyConnection, select: str, file: Path, columns: pa.Schema | None = None) -> None:
    """Write the rows of a SELECT to a file, whose columns are `columns`, or those of the SELECT."""
    rows = cursor.sql(select).to_arrow_reader(BATCH_ROWS)
    columns = columns or rows.schema
    with pq.ParquetWriter(
        file,
        columns,
        compression="zstd",
        use_dictionary=[name for name in columns.names if name not in _PLAIN],
        column_encoding={name: _ENCODINGS[name] for name in columns.names if name in _ENCODINGS},
    ) as writer:
        for group in row_groups.split(pa.Table.from_batches([batch]) for batch in rows.cast(columns)):
            writer.write_table(group, row_groups.ROWS_MAX)
