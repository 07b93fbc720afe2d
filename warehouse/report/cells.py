"""Cells of a snapshot as one SQL relation: rollups, files that none covers, edges of the range, and waiting rows.

All parts have the same columns, so that a report is one sum over their union, and a filter is one predicate.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow.compute as pc

from warehouse.columns.dimensions import BY_NAME, Aspect, Cube, each_measure, find_cube
from warehouse.columns.filters import Bound, Filters
from warehouse.lake import row_groups
from warehouse.lake.delta_table import File
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange, round_to_days
from warehouse.rollups.catalog import ChosenRollups
from warehouse.tables import HITS_TABLE

SLOW_ROWS = 4_000_000
"""Number of rows of `hits` above which a report is slow: about 0.2 s of processor time."""
SHARED_ROWS_MAX = 100_000
"""Maximum number of rows of `hits` that the reports of a page share in memory."""
SHARED_PATH_BYTES = 32 * 1024 * 1024
"""Maximum size of the paths of shared rows, in bytes."""
SLOW_PATH_BYTES = 256 * 1024 * 1024
"""Size of the paths of a project in all files above which a report by path is slow, in bytes."""
SPILLED_PATH_BYTES = 64 * 1024 * 1024
"""Size of these paths above which an export is slow, because a fast one has its rows in memory, in bytes."""
_OF_PROJECT, _OF_PROJECTS = "project_id = $project", "project_id IN (SELECT unnest($project::VARCHAR[]))"
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Scope:
    """The page views that a report counts: of one project or several, in a time range, that match the filters."""

    project: str | tuple[str, ...]
    time_range: TimeRange
    filters: Filters


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows of `hits` that several reports of a page read: a time range of some files, or one path in it."""

    files: tuple[File, ...]
    time_range: TimeRange
    path: str | None


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a scope: a subquery with the asked columns and measures, which may be negative, and what it binds.

    `rows` of `hits` and of large cubes are read, and the files have `path_bytes` of paths by which the cells count.
    `is_empty`: there are none. `relation_of` names the relations of `shared` rows.
    """

    sql: str
    bound: Bound
    rows: int = 0
    path_bytes: int = 0
    is_empty: bool = False
    shared: tuple[SharedRows, ...] = ()

    @property
    def is_slow(self) -> bool:
        """Return whether reading the cells takes long."""
        return self.rows > SLOW_ROWS or self.path_bytes > SLOW_PATH_BYTES


def select(snapshot: Snapshot, rollups: ChosenRollups, scope: Scope, columns: Collection[str]) -> Cells:
    """Return the cells of a scope with some columns, which are names of DIMENSIONS or `project_id`.

    `rollups` cover files of the snapshot.
    """
    needed = dict.fromkeys(name for name in [*columns, *sorted(scope.filters.columns)] if name != "project_id")
    is_by_time = any(BY_NAME[name].aspect is Aspect.TIME for name in needed if name in columns)
    cube = find_cube(needed)
    bound: Bound = {"project": scope.project if isinstance(scope.project, str) else [*scope.project]}
    selects, hits = list[str](), list[tuple[list[File], TimeRange, int]]()
    if cube is None:
        hits.append((files_of(snapshot.files, scope.time_range), scope.time_range, 1))
    else:
        rounded = round_to_days(scope.time_range)
        hits += [(files_of(snapshot.files, each.time_range), each.time_range, each.sign) for each in rounded.edges]
        for days in rounded.whole_days:
            hits.append((files_of(rollups.uncovered, days), days, 1))
            selects += _of_rollups(rollups, days, cube, needed, scope.filters, by_day=is_by_time)
    shared = list[SharedRows]()
    for number, (files, within, sign) in enumerate(each for each in hits if each[0]):
        relation = engine.rows(HITS_TABLE, files)
        if _is_shared(files, within, scope, needed, cube):
            relation = relation_of(len(shared))
            shared.append(SharedRows(tuple(files), within, _one_path(scope.filters) if cube is None else None))
        selects.append(_of_hits(relation, needed, f"{number}", sign))
        bound |= {f"start_{number}": within.start, f"end_{number}": within.end}
    if has_waiting(snapshot, scope.time_range):
        selects.append(_of_hits("(SELECT *, ts::DATE AS date FROM hot)", needed, "hot", 1))
        bound |= {"start_hot": scope.time_range.start, "end_hot": scope.time_range.end}
    read = [file for files, _, _ in hits for file in files]
    condition, values = scope.filters.condition()
    union = " UNION ALL ".join(selects) or _of_hits(engine.no_rows(HITS_TABLE), needed, None, 1)
    shown = ", ".join([*columns, each_measure("{name}")])
    is_of_project = _OF_PROJECT if isinstance(scope.project, str) else _OF_PROJECTS
    sql = f"(SELECT {shown} FROM ({union}) WHERE {is_of_project} AND {condition})"
    size = _size(read, rollups, scope, cube, "path" in needed)
    return Cells(sql, bound | values, *size, not selects, tuple(shared))


def relation_of(number: int) -> str:
    """Return the name of the relation of shared rows: a table in memory, or a view of files."""
    return f"rows_{number}"


def files_of(files: Sequence[File], time_range: TimeRange) -> list[File]:
    """Return the files of the days in which a range has an instant."""
    if time_range.start >= time_range.end:
        return []
    first, last = (each.date().isoformat() for each in (time_range.start, time_range.end - _MICROSECOND))
    return [file for file in files if first <= file.partition <= last]


def has_waiting(snapshot: Snapshot, time_range: TimeRange) -> bool:
    """Return whether the range may have a waiting row: a union with none takes 1 ms."""
    if not snapshot.hot.num_rows:
        return False
    times = pc.min_max(snapshot.hot["ts"])
    return bool(times["min"].as_py() < time_range.end and times["max"].as_py() >= time_range.start)


def _of_hits(rows: str, columns: Collection[str], number: str | None, sign: int) -> str:
    """Return the SELECT of rows of `hits` as cells. `number` is the suffix of the bound times."""
    within = f" WHERE ts >= $start_{number} AND ts < $end_{number}" if number else ""
    values = "".join(f"{BY_NAME[name].sql} AS {name}, " for name in columns)
    numbers = each_measure(f"({{sql}})::BIGINT * {sign} AS {{name}}")
    return f"SELECT project_id, {values}{numbers} FROM {rows}{within}"


def _of_rollups(
    rollups: ChosenRollups, days: TimeRange, cube: Cube, columns: Collection[str], filters: Filters, *, by_day: bool
) -> Iterator[str]:
    """Yield the SELECTs of the cells of whole UTC days in rollups: of months where the days are not asked."""
    first, end = (instant.date().isoformat() for instant in (days.start, days.end))
    cut = {day.isoformat()[:7] for day in filters.policy_days if day.day > 1}
    months, whole = list[str](), list[str]()
    for part in rollups.parts:
        valid = sorted(int(day[-2:]) for day in part.days if first <= day < end)
        if not valid:
            continue
        file, month = str(part.rollup.folder / cube.file), part.rollup.month
        if len(valid) < len(part.rollup.files):
            yield _of_files([file], columns, f"'{month}'", f"day_of_month IN ({', '.join(map(str, valid))})")
        elif by_day or not cube.has_months or month in cut:
            whole.append(file)
        else:
            months.append(file)
    if months:
        yield _of_files(months, columns, "month", "day_of_month = 0")
    if whole:
        yield _of_files(whole, columns, "month", "day_of_month > 0")


def _of_files(files: Sequence[str], columns: Collection[str], month: str, condition: str) -> str:
    """Return the SELECT of rows of a cube as cells. The day of a month is its first."""
    day = f"(({month} || '-01')::DATE + greatest(day_of_month::INTEGER - 1, 0)) AS day"
    values = "".join(f"{day if name == 'day' else name}, " for name in columns)
    cells = engine.parquet_at(files)
    return f"SELECT project_id, {values}{each_measure('{name}::BIGINT AS {name}')} FROM {cells} WHERE {condition}"


def _one_path(filters: Filters) -> str | None:
    return filters.path if filters.path is not None and "*" not in filters.path else None


def _is_shared(
    files: Sequence[File], within: TimeRange, scope: Scope, columns: Collection[str], cube: Cube | None
) -> bool:
    """Return whether several reports read the same rows, which are probably few."""
    if not isinstance(scope.project, str) or "userAgent" in columns:
        return False
    path = _one_path(scope.filters)
    if cube is None and path is not None:
        return len(path) * SHARED_ROWS_MAX <= SHARED_PATH_BYTES
    share = min((within.end - within.start) / timedelta(days=1), 1)
    is_small = sum(file.rows for file in files) * share <= SHARED_ROWS_MAX
    return is_small and path_bytes((file.path for file in files), scope.project) <= SHARED_PATH_BYTES


def _size(
    hits: Iterable[File], rollups: ChosenRollups, scope: Scope, cube: Cube | None, by_path: bool
) -> tuple[int, int]:
    """Return the number of rows of `hits` and of large cubes that are read, and the size of the paths in all files."""
    first, last = (each.isoformat()[:7] for each in (scope.time_range.start, scope.time_range.end))
    counted = [part.rollup for part in rollups.parts if cube and first <= part.rollup.month <= last]
    rows = {file.path: file.rows for file in hits}
    files = rows | {str(rollup.file(cube)): rollup.rows for rollup in counted if cube}
    if cube and cube.is_large:
        rows = files
    number, path = sum(rows.values()), _one_path(scope.filters)
    if not (by_path and isinstance(scope.project, str)):
        return number, 0
    if path is None:
        return number, path_bytes(files, scope.project)
    if number > SLOW_ROWS:  # else the files need not be opened
        number = sum(row_groups.path_rows(file, scope.project, path) for file in rows)
    return number, 0


def path_bytes(files: Iterable[str], project: str) -> int:
    """Return the size of the paths in the row groups of files that may have rows of a project, in bytes."""
    return sum(row_groups.path_bytes(file, project) for file in files)
