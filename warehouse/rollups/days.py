"""Days of a snapshot: days that rollups count, and the rows of other days.

The visitors of the parts of a day cannot be added: they are counted from a rollup of the whole day, or from its rows.
The evidence of a visitor depends on all views of the day: it is computed from all rows, and no rollup has it.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns import evidence
from warehouse.columns.dimensions import Cube
from warehouse.lake.delta_table import File
from warehouse.query import engine
from warehouse.query.snapshot import HOT_COLUMNS, Snapshot
from warehouse.query.time_range import LAST, TimeRange
from warehouse.rollups.catalog import ChosenRollups
from warehouse.tables import ASSET_LOADS_TABLE, HITS_TABLE

_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
_LOADS = "project_id, date, visitor, loads"


def whole(snapshot: Snapshot, rollups: ChosenRollups, project: str, time_range: TimeRange) -> frozenset[str]:
    """Return the days of rollups that a range has as a whole, and that have no other file and no waiting row."""
    first, end = _midnight(time_range.start), _midnight(time_range.end)
    if first < time_range.start:
        first += _DAY
    hot = snapshot.hot.filter(pc.field("project_id") == project)["ts"].cast(pa.date32()).unique()
    partial = {day.isoformat() for day in hot.to_pylist()} | {file.partition for file in rollups.uncovered}
    return frozenset(day for day in within(rollups, first, end) - partial)


def within(rollups: ChosenRollups, start: datetime, end: datetime) -> frozenset[str]:
    """Return the days of rollups between two midnights."""
    first, after = start.date().isoformat(), end.date().isoformat()
    return frozenset(day for part in rollups.parts for day in part.days if first <= day < after)


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


def rows(snapshot: Snapshot, time_range: TimeRange, files: Sequence[File]) -> str | None:
    """Return the relation of the rows of files and of the waiting rows of a range; None without any."""
    columns = ", ".join(HOT_COLUMNS)
    read = [f"SELECT {columns}, date FROM {engine.rows(HITS_TABLE, files)}"] if files else []
    if has_waiting(snapshot, time_range):
        read.append(f"SELECT {columns}, ts::DATE AS date FROM hot")
    return f"({' UNION ALL '.join(read)})" if read else None


def evident(snapshot: Snapshot, time_range: TimeRange, condition: str) -> tuple[str | None, list[File]]:
    """Return the relation of the `rows` of the whole days of a range, with their evidence, and their files.

    `condition` holds for all rows of a visitor, or for none, whose evidence is then unknown. The relation `hot_loads`
    has the waiting loads of assets.
    """
    days = TimeRange(_midnight(time_range.start), _midnight(min(time_range.end, LAST - _DAY) + _DAY - _MICROSECOND))
    files = files_of(snapshot.files, days)
    of_days = rows(snapshot, days, files)
    if of_days is None:
        return None, files
    of_loads = files_of(snapshot.asset_loads().files, days)
    loads = [f"SELECT {_LOADS} FROM {engine.rows(ASSET_LOADS_TABLE, of_loads)}"] if of_loads else []
    loads.append(f"SELECT {_LOADS} FROM hot_loads")
    of_visitors = evidence.of_visitors(of_days, f"({' UNION ALL '.join(loads)})", condition)
    return evidence.joined(of_days, f"({of_visitors})"), files


def of_cube(
    rollups: ChosenRollups, days: frozenset[str], cube: Cube, cuts: Collection[date], *, by_day: bool
) -> Iterator[tuple[list[str], str, str]]:
    """Yield files of a cube with the cells of days, each with the SQL of their month and the condition on a cell.

    Cells of months are used, unless the days are asked, or one of `cuts` is within the month.
    """
    cut = {day.isoformat()[:7] for day in cuts if day.day > 1}
    months, of_days = list[str](), list[str]()
    for part in rollups.parts:
        valid = sorted(int(day[-2:]) for day in part.days & days)
        file, month = str(part.rollup.file(cube)), part.rollup.month
        if valid and len(valid) < len(part.rollup.files):
            yield [file], f"'{month}'", f"day_of_month IN ({', '.join(map(str, valid))})"
        elif valid:
            (of_days if by_day or not cube.has_months or month in cut else months).append(file)
    if months:
        yield months, "month", "day_of_month = 0"
    if of_days:
        yield of_days, "month", "day_of_month > 0"


def _midnight(instant: datetime) -> datetime:
    return datetime.combine(instant.date(), time(), UTC)
