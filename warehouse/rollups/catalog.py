"""Which rollups are on the disk, and which files of `hits` they count.

A rollup is a folder that is written once: `<lake>/rollups/month=YYYY-MM/<uuid>/`. Its file `coverage.json` is written
last and names the files of `hits` that the rollup counts. Files of `hits` never change, so the counts are right for
each snapshot that has these files. The visits and the evidence of a day are right if the snapshot has no other files of
the day, and the same files of VISITOR_TABLES. No lock is needed to read a rollup.
"""

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from warehouse.columns import evidence, visits
from warehouse.columns.dimensions import BY_NAME, CUBES, MEASURES, VISITORS, Cube
from warehouse.errors import RollupDamaged
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root

FOLDER = "rollups"
"""Name of the folder of rollups in the lake."""
COVERAGE = "coverage.json"
UNUSED = "unused"
"""Name of the file that marks the folder of a rollup or ranking which readers of the newest snapshot do not use."""
PARQUET = tuple(cube.file for cube in (*CUBES, VISITORS))
"""Names of the files in the folder of a rollup, beside `coverage.json`."""
REREAD_S = 600
"""Time after which the rollups in an object store are listed again, in seconds: less than GRACE_H."""
DAY_BYTES = 600
"""Memory of a day of a rollup that has one file of `hits`, in bytes."""
VERSION = 8
"""Version of the files' layout, without the cubes."""
_EXPRESSIONS = [(cube.name, cube.has_months, [(name, BY_NAME[name].sql) for name in cube.columns]) for cube in CUBES]
_SUMS, _OF_VISITORS = (
    [(each.name, each.sql) for each in MEASURES],
    (visits.of_rollup("", "", "", "events"), evidence.OF_VISITORS),
)
LAYOUT = hashlib.sha256(repr((VERSION, _EXPRESSIONS, _SUMS, *_OF_VISITORS)).encode()).hexdigest()[:16]
"""Name of the layout. A rollup of another layout is not read: it is written again."""


@dataclass(frozen=True, slots=True)
class Rollup:
    """A rollup of a month (YYYY-MM): its folder, the names of the files of `hits` by day, and their number of rows.

    `beside` are the names of the files of VISITOR_TABLES by day, and `written_s` is the time at which it was written.
    """

    month: str
    folder: Root
    files: Mapping[str, frozenset[str]]
    rows: int
    beside: Mapping[str, frozenset[str]] = field(default_factory=dict)
    written_s: float = 0

    def file(self, cube: Cube) -> Root:
        return self.folder / cube.file


@dataclass(frozen=True, slots=True)
class Part:
    """The valid days (YYYY-MM-DD) of a rollup. `is_whole`: all of its days are valid, so its month totals are right."""

    rollup: Rollup
    days: frozenset[str]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class ChosenRollups:
    """Rollups of a snapshot, and the files that they leave uncovered.

    `parts` are sorted by month, those with most rows of a month first, and have no common days. `uncovered` are the
    files that no part counts, sorted by partition. The days `elsewhere` are counted from something else.
    """

    parts: tuple[Part, ...]
    uncovered: tuple[File, ...]
    elsewhere: frozenset[str] = frozenset()

    @property
    def nbytes(self) -> int:
        """Return the memory of the names of files, in bytes. The files themselves belong to the snapshot."""
        return DAY_BYTES * sum(len(part.rollup.files) for part in self.parts)


class Record(msgspec.Struct, frozen=True):
    """Content of `coverage.json`. `sizes` are the sizes of the Parquet files in bytes."""

    layout: str
    month: str
    rows: int
    files: dict[str, list[str]]
    sizes: dict[str, int]
    beside: dict[str, list[str]] = {}
    written_s: float = 0


Rollups = Mapping[str, Sequence[Rollup]]
"""The rollups that can be read, by their month (YYYY-MM)."""


def read_all(root: Root) -> Rollups:
    """Return all rollups that can be read. They change with `written_key` only."""
    return {month: tuple(list_rollups(root, month)) for month in list_months(root)}


def choose(root: Root, files: Sequence[File]) -> ChosenRollups:
    """Read the rollups of the months of these files, and return those to use: see `match`."""
    months = {file.partition[:7] for file in files}
    return match({month: tuple(list_rollups(root, month)) for month in months}, files)


def match(rollups: Rollups, files: Sequence[File]) -> ChosenRollups:
    """Return the rollups to use for a snapshot with these files of `hits`: for each day, that with most of its rows.

    A day of a rollup is valid if the snapshot has all files that the rollup counts for the day.
    """
    by_day: defaultdict[str, dict[str, File]] = defaultdict(dict)
    for file in files:
        by_day[file.partition][_name(file)] = file
    parts = tuple(
        part
        for month in sorted({day[:7] for day in by_day})
        for part in _divide([_valid(rollup, by_day) for rollup in rollups.get(month, ())], by_day)
    )
    covered = {(day, name) for part in parts for day in part.days for name in part.rollup.files[day]}
    uncovered = (file for file in files if (file.partition, _name(file)) not in covered)
    return ChosenRollups(parts, tuple(sorted(uncovered, key=lambda file: (file.partition, file.path))))


def written_key(root: Root) -> int:
    """Return a number that changes after each change of the usable rollups.

    It is the time of a local folder, and changes every REREAD_S seconds, because another machine may have written or
    removed rollups of a lake in an object store. A rollup is removed `delta_table.GRACE_H` hours after a newer one was
    written, so that a reader may use those of an older key.
    """
    ticks = int(time.time() // REREAD_S)
    try:
        return (root.local / FOLDER).stat().st_mtime_ns + ticks
    except FileNotFoundError:
        return ticks


def change_written_key(root: Root) -> None:
    """Change `written_key`, so that readers read the rollups again."""
    os.utime(root.local / FOLDER)


def take_out_of_use(folder: Root) -> None:
    """Make a rollup garbage, so that no reader chooses it from now on."""
    (folder / COVERAGE).unlink(missing_ok=True)
    folder.sync()


def list_rollups(root: Root, month: str) -> Iterator[Rollup]:
    """Yield the rollups of a month (YYYY-MM) that can be read, in no particular order."""
    for folder in list_folders(root, month):
        with suppress(RollupDamaged, FileNotFoundError):
            yield read_rollup(folder)


def list_folders(root: Root, month: str) -> list[Root]:
    """Return the folders of a month, including those without a `coverage.json`."""
    folder = month_folder(root, month)
    return [folder / name for name in folder.folders()]


def list_months(root: Root) -> list[str]:
    """Return the months (YYYY-MM) that have a folder, in order."""
    return sorted(name.removeprefix("month=") for name in (root / FOLDER).folders() if name.startswith("month="))


def month_folder(root: Root, month: str) -> Root:
    return root / FOLDER / f"month={month}"


def read_rollup(folder: Root) -> Rollup:
    """Return the rollup in a folder.

    Raises:
        FileNotFoundError: the folder has no `coverage.json`: the rollup is being written, or its writer was killed.
        RollupDamaged: `coverage.json` is malformed or of another layout; or a Parquet file is missing or has another
            size.
    """
    sizes = {name: stat.st_size for name, stat in folder.files()}
    if COVERAGE not in sizes:
        raise FileNotFoundError(f"{folder / COVERAGE} is missing")
    try:
        record = msgspec.json.decode((folder / COVERAGE).read_immutable(), type=Record)
    except msgspec.DecodeError as error:
        raise RollupDamaged(f"{folder / COVERAGE} cannot be read: {error}") from None
    if record.layout != LAYOUT:
        raise RollupDamaged(f"{folder / COVERAGE} has the layout {record.layout}, not {LAYOUT}")
    for name in PARQUET:
        if fault := _fault(folder / name, sizes.get(name), record.sizes.get(name)):
            raise RollupDamaged(fault)
    files, beside = ({day: frozenset(names) for day, names in each.items()} for each in (record.files, record.beside))
    return Rollup(record.month, folder, files, record.rows, beside, record.written_s)


def record_of(month: str, files: Sequence[File], beside: Iterable[File], folder: Path) -> Record:
    """Return the content of `coverage.json` for a rollup of files of `hits`, and of VISITOR_TABLES of the same days.

    Its Parquet files must be complete.
    """
    names = names_by_day(files)
    return Record(
        LAYOUT,
        month,
        sum(file.rows for file in files),
        {day: sorted(of_day) for day, of_day in sorted(names.items())},
        {name: (folder / name).stat().st_size for name in PARQUET},
        {day: sorted(of_day) for day, of_day in sorted(names_by_day(beside).items()) if day in names},
        time.time(),
    )


def names_by_day(files: Iterable[File]) -> dict[str, set[str]]:
    """Return the names of files by their day."""
    names = defaultdict[str, set[str]](set)
    for file in files:
        names[file.partition].add(_name(file))
    return names


def stale_days(parts: Iterable[Part], beside: Iterable[File]) -> set[str]:
    """Return the days of parts that were computed from other files of VISITOR_TABLES than these."""
    names = names_by_day(beside)
    return {day for part in parts for day in part.days if part.rollup.beside.get(day, set()) != names.get(day, set())}


def _fault(path: Root, actual: int | None, size: int | None) -> str | None:
    if actual is None:
        return f"{path} is missing"
    return None if actual == size else f"{path} has {actual} bytes, not {size}"


def _valid(rollup: Rollup, by_day: Mapping[str, Mapping[str, File]]) -> Part:
    days = frozenset(day for day, names in rollup.files.items() if names <= by_day.get(day, {}).keys())
    return Part(rollup, days, len(days) == len(rollup.files))


def _divide(parts: Sequence[Part], by_day: Mapping[str, Mapping[str, File]]) -> list[Part]:
    """Return the parts of a month without common days, those with most rows first.

    A day belongs to the part that counts most of its rows, among equals to the part with most rows in all, and then to
    the newest part.
    """

    def rows(part: Part, *days: str) -> int:
        return sum(by_day[day][name].rows for day in days or part.days for name in part.rollup.files[day])

    largest = sorted(parts, key=lambda part: (rows(part), part.is_whole, part.rollup.written_s), reverse=True)
    days: list[set[str]] = [set() for _ in largest]
    for day in {day for part in parts for day in part.days}:
        numbers = (number for number, part in enumerate(largest) if day in part.days)
        days[max(numbers, key=lambda number: rows(largest[number], day))].add(day)
    return [
        Part(part.rollup, frozenset(chosen), part.is_whole and chosen == part.days)
        for part, chosen in zip(largest, days, strict=True)
        if chosen
    ]


def _name(file: File) -> str:
    """Return the name of a file in the folder of its partition."""
    return file.path.rpartition(os.sep)[2]


def vacuum_folder(folder: Root, old_s: float, *, is_used: bool) -> None:
    """Mark a rollup or ranking that is not in use, and remove it if it was marked, and last written, before `old_s`."""
    written_s = {name: stat.st_mtime for name, stat in folder.files()}
    if is_used:
        if UNUSED in written_s:
            (folder / UNUSED).unlink()
    elif UNUSED not in written_s:
        (folder / UNUSED).write(b"")
    elif max(written_s.values()) <= old_s:
        folder.remove_folder()
