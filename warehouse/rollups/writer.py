"""Write the rollup of a month, from its files of `hits` and, where it is valid, from the rollup before it.

Each statement of DuckDB spills what exceeds the memory limit, and its rows pass through this process in batches. The
rollup exists once its `coverage.json` does. Before, its folder is garbage: readers ignore it, and a vacuum removes it.
"""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import msgspec

from warehouse.columns.dimensions import CUBES, VISITORS
from warehouse.errors import LakeUnreachable
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.rollups import catalog, cubes
from warehouse.rollups.catalog import ChosenRollups, Record, Rollup
from warehouse.rollups.cubes import write_rows

OnPoint = Callable[[str], None]
"""Function that is called with the name of each point (see POINTS) at which a crash would leave a different state."""


def no_point(point: str) -> None:
    """Do nothing at a point."""


WRITTEN = tuple(sorted((*CUBES, VISITORS), key=lambda cube: cube.base is not None))
"""Cubes in the order in which they are written: first those that are counted from `hits`, then their sums."""
POINTS = (
    "before count",
    *(f"before {each.name}" for each in WRITTEN),
    "before sync",
    "before coverage",
    "after coverage",
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The Parquet files of a rollup, which no reader uses before `commit`: their folder, and what they count."""

    folder: Root
    record: Record


def prepare(
    root: Root,
    database: duckdb.DuckDBPyConnection,
    month: str,
    files: Sequence[File],
    on_point: OnPoint = no_point,
    *,
    is_copied: bool = True,
) -> Prepared:
    """Write the Parquet files of a rollup of all `files` of a month (YYYY-MM) of `hits`, at least one, and return them.

    If `is_copied`, the valid days of the rollup that a reader would use are copied, and only other files are counted.
    Each call has a folder of its own: a repeated call does not meet the files of the first one.
    """
    chosen = catalog.choose(root, files) if is_copied else ChosenRollups((), tuple(files))
    folder = catalog.month_folder(root, month) / str(uuid.uuid4())
    try:
        with folder.new_folder() as work:
            on_point("before count")
            with database.cursor() as cursor:
                _write_files(cursor, work, chosen, files, on_point)
            record = catalog.record_of(month, files, work)
            on_point("before sync")  # else a power loss could leave coverage.json without a file that it needs
    except BaseException:
        _discard(folder)
        raise
    return Prepared(folder, record)


def commit(root: Root, prepared: Prepared, on_point: OnPoint = no_point) -> Rollup:
    """Write the `coverage.json` of a rollup, so that readers use it, and return the rollup."""
    try:
        on_point("before coverage")
        (prepared.folder / catalog.COVERAGE).write(msgspec.json.encode(prepared.record))
    except BaseException:
        _discard(prepared.folder)
        raise
    on_point("after coverage")
    catalog.change_written_key(root)
    return catalog.read_rollup(prepared.folder)


def _discard(folder: Root) -> None:
    with suppress(OSError, LakeUnreachable):  # a vacuum removes the files that remain
        (folder / catalog.COVERAGE).unlink(missing_ok=True)  # first: with this file, readers use the others
        folder.remove_folder()


def _write_files(
    cursor: duckdb.DuckDBPyConnection, folder: Path, chosen: ChosenRollups, files: Sequence[File], on_point: OnPoint
) -> None:
    """Write the cubes.

    Each statement groups or sorts: DuckDB spills one of them within its memory limit, but not always both.
    """
    with TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        for cube in WRITTEN:
            on_point(f"before {cube.name}")
            if cube is VISITORS:
                selects = [*cubes.count_visitors(chosen, files)]
            elif cube.base is None:
                selects = [cubes.count(cube, chosen.uncovered), *(cubes.copy(cube, part) for part in chosen.parts)]
            else:
                selects = [cubes.add_up(cube, cubes.days(folder / f"{cube.base}.parquet"))]
            relations = [f"({' UNION ALL '.join(selects)})"]
            if not cube.is_large:
                cells = write_rows(cursor, selects, scratch / "cells")
                if len(selects) > 1:
                    cells = write_rows(cursor, [cubes.add_up(cube, cubes.parquet(cells))], scratch / "sums")
                relations = [cubes.parquet(cells)]
            if cube.has_months:
                sums = cubes.add_up(cube, relations[0], "0::UTINYINT")
                relations.insert(0, cubes.parquet(write_rows(cursor, [sums], scratch / "months")))
            write_rows(cursor, [cubes.in_order(cube, each) for each in relations], folder / cube.file)
