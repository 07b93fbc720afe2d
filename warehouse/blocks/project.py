"""Views of the paths of a project in the months that have a rollup."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks import agents, months, rollup_rows
from warehouse.blocks.agents import AgentViews
from warehouse.blocks.cumulative import Array, CumulativeCounts
from warehouse.blocks.months import DAYS, Key, MonthBlock
from warehouse.blocks.paths import PathIds
from warehouse.blocks.rollup_rows import numbers
from warehouse.rollups.coverage import Part
from warehouse.rollups.schema import SOURCES, TRAFFIC

NARROW_VIEWS_MAX = 2**31
"""Maximum number of views that are added up in 32 bits. The views of uncovered files and hot rows still fit."""
READERS = 2
"""Number of threads that read the rollups of months. pyarrow reads without the GIL."""

_KEYS: dict[Key, tuple[str, str]] = {
    (source, traffic): (SOURCES[source], TRAFFIC[traffic])
    for source in range(len(SOURCES))
    for traffic in range(len(TRAFFIC))
}


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class ProjectBlock:
    """Views of paths by month, cumulated, for each source and traffic that has any.

    `members` has, for each month, one bit for each sorted path: whether the rollup of the month has a row of the path.
    """

    project: str
    parts: tuple[Part, ...]
    paths: PathIds
    members: tuple[Array, ...]
    totals: Mapping[Key, CumulativeCounts]
    dtype: npt.DTypeLike

    @property
    def nbytes(self) -> int:
        members = sum(each.nbytes for each in self.members)
        return self.paths.nbytes + members + sum(each.nbytes for each in self.totals.values())

    def month(self, index: int) -> MonthBlock:
        """Read the daily views of a month."""
        days, path_ids, sources, views = _read_days(self.parts[index], self.project)
        return months.build(days, self.path_ids(index)[path_ids], sources, views, self.paths.sorted_count)

    def agent_month(self, index: int, values: Mapping[str, str]) -> AgentViews:
        """Read the daily views of a month by the hits that have these values of AGENT_COLUMNS, at least one."""
        part = self.parts[index]
        rows = _on_valid_days(
            rollup_rows.read_where(part.rollup.agent_paths, self.project, values, agents.COLUMNS), part
        )
        days, path_ids, sources, traffic, views = (rows[name].to_numpy() for name in agents.COLUMNS)
        return AgentViews(days, self.path_ids(index).astype(np.uint32)[path_ids], sources, traffic, views)

    def path_ids(self, index: int) -> Array:
        """Return the ids of the paths that the rollup of a month has, in its order."""
        return np.flatnonzero(np.unpackbits(self.members[index], count=self.paths.sorted_count))

    def first_months(self, ids: Array, traffic: int) -> Array:
        """Return the index of the first month in which each of the sorted path ids has views; -1 without any.

        `traffic` is an index in TRAFFIC.
        """
        views = np.zeros((len(self.parts), ids.size), np.int64)
        for source in range(len(SOURCES)):
            if (source, traffic) in self.totals:
                views += self.totals[source, traffic].rows(ids)
        first: Array = np.argmax(views > 0, axis=0) if self.parts else np.zeros(ids.size, np.intp)
        return np.where(views.any(axis=0), first, -1)

    def ids_in_rollup(self, index: int, ids: Array) -> Array:
        """Return the path ids that the rollup of a month has for sorted path ids, of which each has a row there."""
        members = np.unpackbits(self.members[index], count=self.paths.sorted_count)
        in_rollup: Array = np.cumsum(members, dtype=np.int64)[ids] - 1
        return in_rollup

    def add(
        self, sums: Array, key: Key, ids: slice, dates: tuple[date, date], month: Callable[[int], MonthBlock]
    ) -> None:
        """Add the views of path ids with dates[0] <= date < dates[1] to `sums`. Unsigned sums may wrap around.

        `month` returns the daily views of a month. It is called for the first and the last one, if only some of their
        days are counted.
        """
        first, end, days = self._split(*dates)
        if first < end and key in self.totals:
            sums += self.totals[key].between(first, end, ids, sums.dtype)
        for index, within in days.items():
            if key in (views := month(index).views):
                views[key].add(sums, ids, within)

    def days_by_month(self, dates: tuple[date, date]) -> dict[int, range]:
        """Return the days of the months with dates[0] <= date < dates[1], by the index of the month."""
        first, end, days = self._split(*dates)
        return {**dict.fromkeys(range(first, end), range(1, DAYS + 1)), **days}

    def cut_months(self, dates: tuple[date, date]) -> list[int]:
        """Return the indices of the months of which only some days are within dates[0] <= date < dates[1]."""
        _, _, days = self._split(*dates)
        return list(days)

    def _split(self, start: date, end: date) -> tuple[int, int, dict[int, range]]:
        """Return the whole months of a range, as the first index and the one after the last, and the days of others."""
        first, last = (bisect_left(self.parts, day.isoformat()[:7], key=_month) for day in (start, end))
        first_days, last_days = range(start.day, DAYS + 1), range(1, end.day)
        is_first_cut = start.day > 1 and self._is_month(first, start)
        is_last_cut = bool(last_days) and self._is_month(last, end)
        if is_first_cut and is_last_cut and first == last:
            return first, last, {first: range(start.day, end.day)}
        days = {first: first_days} if is_first_cut else {}
        return first + is_first_cut, last, {**days, **({last: last_days} if is_last_cut else {})}

    def _is_month(self, index: int, day: date) -> bool:
        return index < len(self.parts) and _month(self.parts[index]) == day.isoformat()[:7]


def read(parts: Sequence[Part], project: str, previous: ProjectBlock | None = None) -> ProjectBlock:
    """Read the views of a project from the rollups of months, which are in order.

    The months that `previous`, an earlier block of the project, counts from the same files are taken from it.
    """
    previous = previous or ProjectBlock(project, (), PathIds(pa.array([], pa.string())), (), {}, np.uint32)
    indices = {_files_key(part): index for index, part in enumerate(previous.parts)}
    known = {place: indices[key] for place, part in enumerate(parts) if (key := _files_key(part)) in indices}
    changed = [part for place, part in enumerate(parts) if place not in known]
    with ThreadPoolExecutor(READERS, "blocks") as pool:
        tables = list(pool.map(lambda part: rollup_rows.read(part.rollup.paths, project), changed))
    is_known = np.zeros(previous.paths.sorted_count, bool)
    for index in known.values():
        is_known[previous.path_ids(index)] = True
    known_paths = pa.chunked_array([previous.paths.take(np.flatnonzero(is_known))])
    paths, (known_ids, *ids) = _merge([known_paths, *(table["path"] for table in tables)])
    new_ids = np.zeros(is_known.size, np.uint32)
    new_ids[is_known] = known_ids
    read_months = zip(ids, map(partial(_totals, project=project), changed, tables), strict=True)
    month_totals = [
        _moved(previous, known[place], new_ids) if place in known else next(read_months) for place in range(len(parts))
    ]
    return _join(project, tuple(parts), paths, month_totals)


def _files_key(part: Part) -> Hashable:
    return part.rollup.folder, part.days


def _moved(block: ProjectBlock, index: int, new_ids: Array) -> tuple[Array, dict[Key, Array]]:
    """Return the path ids and the views of a month of a block. `new_ids` are the new ids by the ids of the block."""
    ids, everything = block.path_ids(index), slice(0, block.paths.sorted_count)
    views = {key: totals.between(index, index + 1, everything, np.uint32)[ids] for key, totals in block.totals.items()}
    return new_ids[ids], {key: each for key, each in views.items() if each.any()}


def _join(
    project: str, parts: tuple[Part, ...], paths: pa.Array, month_totals: Sequence[tuple[Array, dict[Key, Array]]]
) -> ProjectBlock:
    """Return the block of months, each with its path ids and the views by row for each source and traffic."""
    totals: dict[Key, CumulativeCounts] = {}
    for key in sorted({key for _, views in month_totals for key in views}):
        rows = np.zeros((len(parts), len(paths)), np.uint32)
        for row, (ids, views) in zip(rows, month_totals, strict=True):
            if key in views:
                row[ids] = views[key]
        totals[key] = CumulativeCounts.of(rows)
    sum_of_all = sum(int(each.sum(dtype=np.int64)) for _, views in month_totals for each in views.values())
    members = tuple(_bits(ids, len(paths)) for ids, _ in month_totals)
    dtype = np.uint32 if sum_of_all <= NARROW_VIEWS_MAX else np.int64
    pa.default_memory_pool().release_unused()  # the columns of paths took several times the memory of the block
    return ProjectBlock(project, parts, PathIds(paths), members, totals, dtype)


def _merge(columns: Sequence[pa.ChunkedArray]) -> tuple[pa.Array, list[Array]]:
    """Return all paths, sorted by bytes, and for each column the indices of its paths among them."""
    encoded = pa.chunked_array([column.combine_chunks() for column in columns], pa.string()).dictionary_encode()
    if len(encoded) == 0:
        return pa.array([], pa.string()), [np.zeros(0, np.uint32)] * len(columns)
    paths = encoded.chunk(0).dictionary
    order = pc.sort_indices(paths)
    rank = np.empty(len(paths), np.uint32)
    rank[order.to_numpy()] = np.arange(len(paths), dtype=np.uint32)
    ids = rank[np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])]
    return paths.take(order), np.split(ids, np.cumsum([len(column) for column in columns])[:-1])


def _totals(part: Part, rows: pa.Table, project: str) -> dict[Key, Array]:
    """Return the views of the month by row, for each source and traffic that has any."""
    if part.is_whole:
        columns = {key: f"{traffic}_{source}" for key, (source, traffic) in _KEYS.items()}
        return {key: numbers(rows, column) for key, column in columns.items() if column in rows.column_names}
    _, path_ids, sources, views = _read_days(part, project)
    totals = {}
    for source, traffic in _KEYS:
        chosen = sources == source
        if views[traffic][chosen].any():
            totals[source, traffic] = np.zeros(rows.num_rows, np.uint32)
            np.add.at(totals[source, traffic], path_ids[chosen], views[traffic][chosen])
    return totals


def _read_days(part: Part, project: str) -> tuple[Array, Array, Array, tuple[Array, ...]]:
    """Return the days, path ids, sources and views by traffic of the rows of a project on the valid days of a month."""
    rows = _on_valid_days(rollup_rows.read(part.rollup.days, project), part)
    days, path_ids, sources = (numbers(rows, column) for column in ("day", "path_id", "source"))
    return days, path_ids, sources, tuple(numbers(rows, column) for column in TRAFFIC)


def _on_valid_days(rows: pa.Table, part: Part) -> pa.Table:
    if part.is_whole:
        return rows
    valid = pa.array([int(day[-2:]) for day in part.days], rows.schema.field("day").type)
    return rows.filter(pc.is_in(rows["day"], valid))


def _bits(ids: Array, count: int) -> Array:
    is_member = np.zeros(count, bool)
    is_member[ids] = True
    return np.packbits(is_member)


def _month(part: Part) -> str:
    return part.rollup.month
