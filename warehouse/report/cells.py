"""Cells of a snapshot as one SQL relation: rollups, files that none covers, edges of the range, and waiting rows.

All parts have the same columns, so that a report is one sum over their union, and a filter is one predicate.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from warehouse.columns import evidence, visits
from warehouse.columns.dimensions import BY_NAME, OF_VISITS, Aspect, Cube, each_measure, find_cube
from warehouse.columns.filters import Bound, Filters, match_path
from warehouse.columns.sources import EVIDENCE
from warehouse.lake import row_groups
from warehouse.lake.delta_table import File
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange, round_to_days
from warehouse.rollups import days
from warehouse.rollups.catalog import ChosenRollups
from warehouse.rollups.days import files_of, has_waiting
from warehouse.tables import HITS_TABLE

SLOW_ROWS = 4_000_000
"""Number of rows of `hits` above which a report is slow: about 0.2 s of processor time."""
VISIT_ROWS = 16
"""Number of rows of `hits` that are read in the time in which the visit of one is found: 0.9 s for a million."""
SHARED_ROWS_MAX = 100_000
"""Maximum number of rows of `hits` that the reports of a page share in memory."""
SHARED_PATH_BYTES = 32 * 1024 * 1024
"""Maximum size of the paths of shared rows, in bytes."""
SLOW_PATH_BYTES = 256 * 1024 * 1024
"""Size of the paths of a project in all files above which a report by path is slow, in bytes."""
SPILLED_PATH_BYTES = 64 * 1024 * 1024
"""Size of these paths above which an export is slow, because a fast one has its rows in memory, in bytes."""
_NO_ROLLUPS = ChosenRollups((), ())
_OF_PROJECT, _OF_PROJECTS = "project_id = $project", "project_id IN (SELECT unnest($project::VARCHAR[]))"


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
    cube, by_evidence = find_cube(needed), "evidence" in columns or scope.filters.by_evidence
    is_of_project = _OF_PROJECT if isinstance(scope.project, str) else _OF_PROJECTS
    if by_evidence or scope.filters.of_visits:
        chosen = _together(snapshot, rollups if cube else _NO_ROLLUPS, scope, needed, is_of_project, by_evidence)
    else:
        chosen = _parts(snapshot, rollups, scope, needed, cube)
    selects, cuts = chosen.selects, scope.filters.policy_days
    if cube:
        for files, month, is_valid in days.of_cube(rollups, chosen.covered, cube, cuts, by_day=is_by_time):
            selects.append(_of_files(files, needed, month, is_valid))
    bound: Bound = {"project": scope.project if isinstance(scope.project, str) else [*scope.project], **chosen.bound}
    condition, values = scope.filters.condition()
    union = " UNION ALL ".join(selects) or _of_hits(engine.no_rows(HITS_TABLE, "evidence", *OF_VISITS), needed, None, 1)
    shown = ", ".join([*columns, each_measure("{name}")])
    sql = f"(SELECT {shown} FROM ({union}) WHERE {is_of_project} AND {condition})"
    size = _size(chosen.files, rollups, scope, cube, "path" in needed)
    return Cells(sql, bound | values, *size, not selects, tuple(chosen.shared))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The SELECTs of rows of `hits`, what they bind, their files, and the days that are counted from rollups."""

    selects: list[str] = field(default_factory=list)
    bound: Bound = field(default_factory=dict)
    files: list[File] = field(default_factory=list)
    shared: list[SharedRows] = field(default_factory=list)
    covered: frozenset[str] = frozenset()


def _together(
    snapshot: Snapshot, rollups: ChosenRollups, scope: Scope, columns: Collection[str], within: str, by_evidence: bool
) -> _Chosen:
    """Choose whole days of rollups, and all rows of other days: visits, and the evidence of a visitor, need them."""
    covered, bound = days.whole(snapshot, rollups, scope.project, scope.time_range), Bound()
    files = files_of(snapshot.files, scope.time_range)
    read = days.rows(snapshot, scope.time_range, files)
    rows = read and evidence.unknown(read)
    for name in OF_VISITS:
        if page := scope.filters[name]:  # visits are found among the views of the few visitors who saw the page
            matches = " AND ".join([within, *match_path(page, bound, f"{name}_seen")])
            within = f"{within} AND visitor IN (SELECT visitor FROM {read} WHERE {matches})"
    if by_evidence:
        rows, files = days.evident(snapshot, scope.time_range, within, covered | rollups.elsewhere)
    if scope.filters.of_visits:
        rows = rows and visits.of_views(rows, f"{within} AND ts >= $start_0 AND ts < $end_0")
    selects = [_of_hits(rows, columns, "0", 1)] if rows else []
    bound = {"start_0": scope.time_range.start, "end_0": scope.time_range.end, **bound} if rows else {}
    return _Chosen(selects, bound, files, covered=covered)


def _parts(
    snapshot: Snapshot, rollups: ChosenRollups, scope: Scope, columns: Collection[str], cube: Cube | None
) -> _Chosen:
    """Choose the rows of files that no rollup counts, of the edges of the range, and those that wait."""
    hits = list[tuple[list[File], TimeRange, int]]()
    chosen = _Chosen()
    if cube is None:
        hits.append((files_of(snapshot.files, scope.time_range), scope.time_range, 1))
    else:
        rounded = round_to_days(scope.time_range)
        hits += [(files_of(snapshot.files, each.time_range), each.time_range, each.sign) for each in rounded.edges]
        for whole in rounded.whole_days:
            hits.append((files_of(rollups.uncovered, whole), whole, 1))
            chosen = _Chosen(covered=days.within(rollups.parts, whole))
    for number, (files, within, sign) in enumerate(each for each in hits if each[0]):
        relation = engine.rows(HITS_TABLE, files)
        if _is_shared(files, within, scope, columns, cube):
            relation = relation_of(len(chosen.shared))
            chosen.shared.append(SharedRows(tuple(files), within, _one_path(scope.filters) if cube is None else None))
        chosen.selects.append(_of_hits(evidence.unknown(relation), columns, f"{number}", sign))
        chosen.bound.update({f"start_{number}": within.start, f"end_{number}": within.end})
        chosen.files.extend(files)
    if has_waiting(snapshot, scope.time_range):
        waiting = "(SELECT *, ts::DATE AS date, NULL::VARCHAR AS evidence FROM hot)"
        chosen.selects.append(_of_hits(waiting, columns, "hot", 1))
        chosen.bound.update({"start_hot": scope.time_range.start, "end_hot": scope.time_range.end})
    return chosen


def relation_of(number: int) -> str:
    """Return the name of the relation of shared rows: a table in memory, or a view of files."""
    return f"rows_{number}"


def _of_hits(rows: str, columns: Collection[str], number: str | None, sign: int) -> str:
    """Return the SELECT of rows of `hits`, with `evidence`, as cells. `number` is the suffix of the bound times."""
    within = f" WHERE ts >= $start_{number} AND ts < $end_{number}" if number else ""
    values = "".join(f"{BY_NAME[name].sql} AS {name}, " for name in columns)
    numbers = each_measure(f"({{sql}})::BIGINT * {sign} AS {{name}}")
    return f"SELECT project_id, {values}{numbers} FROM {rows}{within}"


def _of_files(files: Sequence[str], columns: Collection[str], month: str, condition: str) -> str:
    """Return the SELECT of rows of a cube as cells. The day of a month is its first."""
    day = f"(({month} || '-01')::DATE + greatest(day_of_month::INTEGER - 1, 0)) AS day"
    computed = {"day": day, "evidence": f"{EVIDENCE} AS evidence"}
    values = "".join(f"{computed.get(name, name)}, " for name in columns)
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
    number, path = sum(rows.values()), None if scope.filters.of_visits else _one_path(scope.filters)
    number *= VISIT_ROWS if scope.filters.of_visits else 1
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
