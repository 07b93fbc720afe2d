"""Days of a snapshot: days that rollups count, and the rows of other days.

The visitors of the parts of a day cannot be added, and their evidence depends on all views of the day: both are counted
from a rollup of the whole day, or from its rows.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns import evidence
from warehouse.columns.dimensions import Cube
from warehouse.lake.delta_table import File
from warehouse.query import engine
from warehouse.query.snapshot import HOT_COLUMNS, Snapshot
from warehouse.query.time_range import LAST, TimeRange
from warehouse.rollups import catalog
from warehouse.rollups.catalog import ChosenRollups, Part
from warehouse.tables import ASSET_LOADS_TABLE, EVENTS_TABLE, HITS_TABLE, VISITOR_TABLES

_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
_LOADS = "project_id, date, visitor, loads"
_EVENTS = "project_id, ts, name, path, visitor, traffic, agent, source, props, interactive, NULL::VARCHAR AS format"
NO_EVENTS = engine.no_rows(EVENTS_TABLE, "format")


def whole(
    snapshot: Snapshot, rollups: ChosenRollups, projects: str | Sequence[str], time_range: TimeRange
) -> frozenset[str]:
    """Return the days of rollups that a range has as a whole, and that have no other file and no waiting row.

    VISITOR_TABLES have neither other files of the day, nor waiting rows.
    """
    inner = inside(time_range)
    is_of_projects = pc.field("project_id").isin([projects] if isinstance(projects, str) else [*projects])
    beside = [snapshot.beside(spec) for spec in VISITOR_TABLES]
    partial = {file.partition for file in rollups.uncovered}
    partial |= catalog.stale_days(rollups.parts, chain(*(files_of(each.files, inner) for each in beside)))
    for each in (snapshot, *beside):
        waiting = each.hot.filter(is_of_projects)["date" if "date" in each.hot.column_names else "ts"]
        partial |= {day.isoformat() for day in waiting.cast(pa.date32()).unique().to_pylist()}
    return within(rollups.parts, inner) - partial


def inside(time_range: TimeRange) -> TimeRange:
    """Return the UTC days that a range has as a whole; without any, the start may be after the end."""
    first = _midnight(time_range.start)
    return TimeRange(first if first == time_range.start else first + _DAY, _midnight(time_range.end))


def around(time_range: TimeRange) -> TimeRange:
    """Return the UTC days in which a range has an instant."""
    return TimeRange(_midnight(time_range.start), _midnight(min(time_range.end, LAST - _DAY) + _DAY - _MICROSECOND))


def within(parts: Iterable[Part], whole_days: TimeRange) -> frozenset[str]:
    """Return the days of parts of rollups between two midnights."""
    first, after = whole_days.start.date().isoformat(), whole_days.end.date().isoformat()
    return frozenset(day for part in parts for day in part.days if first <= day < after)


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


def events(snapshot: Snapshot, time_range: TimeRange, covered: Collection[str] = ()) -> str | None:
    """Return the relation of the events of the days of a range, without days that are `covered`; None without any.

    The relation `hot_events` has the waiting ones.
    """
    beside = snapshot.beside(EVENTS_TABLE)
    files = [file for file in files_of(beside.files, time_range) if file.partition not in covered]
    read = [f"SELECT {_EVENTS}, date FROM {engine.rows(EVENTS_TABLE, files)}"] if files else []
    if beside.hot.num_rows:
        read.append(f"SELECT {_EVENTS}, ts::DATE AS date FROM hot_events")
    return f"({' UNION ALL '.join(read)})" if read else None


def evident(
    snapshot: Snapshot, time_range: TimeRange, condition: str, covered: Collection[str]
) -> tuple[str | None, list[File]]:
    """Return the relation of the `rows` of the days of a range, with their evidence, and their files.

    Days that are `covered` by rollups are left out. `condition` holds for all rows of a visitor, or for none, whose
    evidence is then unknown. The relation `hot_loads` has the waiting loads of assets.
    """
    days = around(time_range)
    files, of_loads = (
        [file for file in files_of(each, days) if file.partition not in covered]
        for each in (snapshot.files, snapshot.beside(ASSET_LOADS_TABLE).files)
    )
    of_days = rows(snapshot, days, files)
    if of_days is None:
        return None, files
    loads = [f"SELECT {_LOADS} FROM {engine.rows(ASSET_LOADS_TABLE, of_loads)}"] if of_loads else []
    if not loads or snapshot.beside(ASSET_LOADS_TABLE).hot.num_rows:
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
