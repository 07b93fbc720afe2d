"""Write the rollup of a month, from its files of `hits` and, where it is valid, from the rollup before it.

Each statement of DuckDB spills what exceeds the memory limit, and its rows pass through this process in batches. The
rollup exists once its `coverage.json` does. Before, its folder is garbage: readers ignore it, and a vacuum removes it.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import duckdb
import msgspec

from warehouse.columns.dimensions import CUBES, VISITORS, Cube
from warehouse.errors import LakeUnreachable
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.rollups import catalog, cubes
from warehouse.rollups.catalog import ChosenRollups, Part, Record, Rollup
from warehouse.rollups.cubes import NOTHING, Beside, write_rows

OnPoint = Callable[[str], None]
"""Function that is called with the name of each point (see POINTS) at which a crash would leave a different state."""


def no_point(point: str) -> None:
    """Do nothing at a point."""


WRITTEN = (VISITORS, *reversed(CUBES))
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
    beside: Beside = NOTHING,
    is_copied: bool = True,
) -> Prepared:
    """Write the Parquet files of a rollup of all `files` of a month (YYYY-MM) of `hits`, at least one, and return them.

    `beside` has the files of VISITOR_TABLES. If `is_copied`, the days that a rollup of readers has whole, with these
    files, are copied, and the others are counted. Each call has a folder of its own: a repeated call does not meet the
    files of the first one.
    """
    chosen = catalog.choose(root, files) if is_copied else ChosenRollups((), tuple(files))
    folder = catalog.month_folder(root, month) / str(uuid.uuid4())
    try:
        with folder.new_folder() as work:
            on_point("before count")
            with database.cursor() as cursor:
                _write_files(cursor, work, _Source.of(chosen, files, beside), on_point)
            record = catalog.record_of(month, files, chain(*beside.values()), work)
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


@dataclass(frozen=True, slots=True)
class _Source:
    """Origin of a rollup: days of older rollups, and files of `hits` and VISITOR_TABLES of all other days."""

    copied: tuple[tuple[Part, frozenset[str]], ...]
    files: Sequence[File]
    beside: Beside

    @classmethod
    def of(cls, chosen: ChosenRollups, files: Sequence[File], beside: Beside) -> Self:
        """Return the source. Visitors, and their evidence, cannot be counted from a part of a day."""
        days = {file.partition for file in chosen.uncovered} | catalog.stale_days(chosen.parts, chain(*beside.values()))
        copied = ((part, part.days - days) for part in chosen.parts)
        again = [file for file in files if file.partition in days]
        return cls(tuple(each for each in copied if each[1]), again, beside)

    def cells(self, cube: Cube, found: Path) -> Iterator[str]:
        """Yield the SELECTs of the cells of a cube without a base. The file `found` has the evidence."""
        yield from cubes.count(cube, self.files, self.beside, found)
        for part, days in self.copied:
            yield cubes.copy(cube, part, days)


def _write_files(cursor: duckdb.DuckDBPyConnection, folder: Path, source: _Source, on_point: OnPoint) -> None:
    """Write the cubes.

    Each statement groups or sorts: DuckDB spills one of them within its memory limit, but not always both.
    """
    with TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        if source.files:
            write_rows(cursor, [*cubes.find_evidence(source.files, source.beside)], scratch / "evidence")
        for cube in WRITTEN:
            on_point(f"before {cube.name}")
            if cube.base is None:
                selects = [*source.cells(cube, scratch / "evidence")]
            else:
                selects = [cubes.add_up(cube, cubes.days(folder / f"{cube.base}.parquet"))]
            relations = [cubes.parquet(write_rows(cursor, selects, scratch / "cells"))]
            if len(selects) > 1 and not cube.is_large:
                sums = [cubes.add_up(cube, relations[0])]
                relations = [cubes.parquet(write_rows(cursor, sums, scratch / "sums"))]
            if cube.has_months:
                sums = [cubes.add_up(cube, relations[0], "0::UTINYINT")]
                relations.insert(0, cubes.parquet(write_rows(cursor, sums, scratch / "months")))
            write_rows(cursor, [cubes.in_order(cube, each) for each in relations], folder / cube.file)
