"""Views of the paths of a project in the months that have a rollup."""

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks import agents, months, rollup_rows
from warehouse.blocks.agents import GroupedViews
from warehouse.blocks.cumulative import Array, CumulativeCounts
from warehouse.blocks.months import DAYS, Key, MonthBlock, RestOfMonth, SomeDays, other_days
from warehouse.blocks.paths import PathIds, encode, pack, pack_in_order
from warehouse.blocks.rollup_rows import ProjectRows
from warehouse.errors import BlockTooLarge
from warehouse.rollups.coverage import Part
from warehouse.rollups.schema import SOURCES, TRAFFIC

NARROW_VIEWS_MAX = 2**31
"""Maximum number of views that are added up in 32 bits. The views of uncovered files and hot rows still fit."""
PATHS_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of the texts of a project's paths, and of the counts of one source and traffic, in bytes."""
MERGED_BYTES = 64 * 1024 * 1024
"""Maximum size of the paths of rollups that are read at once, or the paths of one rollup, in bytes."""
BUILD_BYTES = 64 * 1024 * 1024
"""Maximum memory of the counts that are cumulated at once, or those of one source and traffic, in bytes."""
READ_THREADS = 2
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

    def month(self, index: int, days: range | None = None) -> MonthBlock:
        """Read the daily views of a month. With `days`, the views of other days may be missing."""
        of_rows, path_ids, sources, views = rollup_rows.read_days(self.parts[index], self.project, days)
        return months.build(of_rows, self.path_ids(index)[path_ids], sources, views, self.paths.sorted_count)

    def some_days(self, index: int, days: range) -> SomeDays:
        """Read the daily views of a month on `days`.

        If they begin or end the month, and its other days are fewer, the other days are read instead. Their views are
        subtracted from those of the whole month.
        """
        is_rest_shorter = (days.start == 1 or days.stop > DAYS) and 2 * len(days) > DAYS
        read = self.month(index, other_days(days) if is_rest_shorter else days)
        if not is_rest_shorter:
            return SomeDays(days, read.views, read.nbytes)
        rest = {key: RestOfMonth(totals, index, read.views.get(key)) for key, totals in self.totals.items()}
        return SomeDays(days, rest, read.nbytes)

    def agent_month(self, index: int, values: Mapping[str, str]) -> GroupedViews:
        """Read the daily views of a month by the hits that have these values of AGENT_COLUMNS, at least one."""
        part = self.parts[index]
        rows = rollup_rows.on_valid_days(
            rollup_rows.read_where(part.rollup.agent_paths, self.project, values, agents.COLUMNS), part
        )
        days, path_ids, sources, traffic, views = (rows[name].to_numpy() for name in agents.COLUMNS)
        ids = self.path_ids(index).astype(np.min_scalar_type(self.paths.sorted_count))
        return agents.group(days, ids[path_ids], sources, traffic, views)

    def is_member(self, index: int) -> Array:
        """Return, for each sorted path, whether the rollup of a month has a row of the path."""
        return np.unpackbits(self.members[index], count=self.paths.sorted_count).view(bool)

    def path_ids(self, index: int) -> Array:
        """Return the ids of the paths that the rollup of a month has, in its order."""
        return np.flatnonzero(self.is_member(index))

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
        self, sums: Array, key: Key, ids: slice, dates: tuple[date, date], month: Callable[[int], MonthBlock | SomeDays]
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

    def cut_months(self, dates: tuple[date, date]) -> dict[int, range]:
        """Return the days within dates[0] <= date < dates[1] of the months that have others, by index of the month."""
        _, _, days = self._split(*dates)
        return days

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


def read(
    parts: Sequence[Part],
    project: str,
    previous: ProjectBlock | None = None,
    merged_bytes: int = MERGED_BYTES,
    build_bytes: int = BUILD_BYTES,
) -> ProjectBlock:
    """Read the views of a project from the rollups of months, which are in order.

    The months that `previous`, an earlier block of the project, counts from the same files are taken from it. Beside
    both blocks, reading needs memory for the hash table of all paths and for `merged_bytes` of paths; and then for
    `build_bytes`, or for the counts of one source and traffic in all months if they are larger.

    Raises:
        BlockTooLarge: the paths, or the counts of one source and traffic, have more than PATHS_BYTES_MAX.
    """
    previous = previous or ProjectBlock(project, (), PathIds(pa.array([], pa.string())), (), {}, np.uint32)
    indices = {_files_key(part): index for index, part in enumerate(previous.parts)}
    months = [
        _KnownMonth(previous, index) if (index := indices.get(_files_key(part))) is not None else _find(part, project)
        for part in parts
    ]
    paths, members = _merge(previous, months, merged_bytes)
    totals: dict[Key, CumulativeCounts] = {}
    at_once = max(1, build_bytes // max(1, 4 * len(parts) * len(paths)))
    for first in range(0, len(_KEYS), at_once):
        totals |= _cumulate([*_KEYS][first : first + at_once], months, members, len(paths))
    everything = slice(0, len(paths))
    sum_of_all = sum(int(each.between(0, len(parts), everything, np.int64).sum()) for each in totals.values())
    dtype = np.uint32 if sum_of_all <= NARROW_VIEWS_MAX else np.int64
    return ProjectBlock(project, tuple(parts), PathIds(paths), members, totals, dtype)


@dataclass(frozen=True, slots=True)
class _KnownMonth:
    """A month of an earlier block."""

    block: ProjectBlock
    index: int

    def views(self, keys: Sequence[Key]) -> dict[Key, Array]:
        """Return the views by path of the month, for the sources and traffic that the block has."""
        ids, everything = self.block.path_ids(self.index), slice(0, self.block.paths.sorted_count)
        month = (self.index, self.index + 1, everything, np.uint32)
        return {key: self.block.totals[key].between(*month)[ids] for key in keys if key in self.block.totals}


@dataclass(frozen=True, slots=True)
class _RollupMonth:
    """A month in a rollup. `totals` are its views if only some days of the rollup are valid."""

    rows: ProjectRows
    totals: dict[Key, Array] | None

    def views(self, keys: Sequence[Key]) -> dict[Key, Array]:
        """Return the views by path of the month, for the sources and traffic that the month has."""
        if self.totals is not None:
            return {key: self.totals[key] for key in keys if key in self.totals}
        columns = {f"{traffic}_{source}": key for key in keys for source, traffic in [_KEYS[key]]}
        rows = self.rows.read([*columns])
        return {columns[name]: rows[name].to_numpy() for name in rows.column_names}


_Month = _KnownMonth | _RollupMonth


def _find(part: Part, project: str) -> _RollupMonth:
    rows = rollup_rows.find(part.rollup.paths, project)
    return _RollupMonth(rows, None if part.is_whole else _totals(part, rows.count, project))


def _files_key(part: Part) -> Hashable:
    return part.rollup.folder, part.days


def _merge(previous: ProjectBlock, months: Sequence[_Month], merged_bytes: int) -> tuple[pa.Array, tuple[Array, ...]]:
    """Return the paths of all months, sorted by bytes, and the members of each month.

    The rollups are read in groups: the dictionary of a group begins with the paths of the groups before it. One
    dictionary of all rollups would take the memory of the paths of all months.
    """
    is_known = np.zeros(previous.paths.sorted_count, bool)
    for month in months:
        if isinstance(month, _KnownMonth):
            is_known |= previous.is_member(month.index)
    paths = previous.paths.take(np.flatnonzero(is_known))
    unsorted = {
        place: np.packbits(previous.is_member(month.index)[is_known])
        for place, month in enumerate(months)
        if isinstance(month, _KnownMonth)
    }
    to_read = {place: month.rows for place, month in enumerate(months) if isinstance(month, _RollupMonth)}
    for group in rollup_rows.in_groups(to_read, merged_bytes):
        _require_small(max(rows.path_bytes for _, rows in group))
        paths, ids = encode([paths, *_read_paths([rows for _, rows in group])])
        _require_small(max(paths.nbytes, 4 * len(paths) * len(months)))
        unsorted |= {place: pack(each, len(paths)) for (place, _), each in zip(group, ids, strict=True)}
        del ids
        pa.default_memory_pool().release_unused()
    order = pc.sort_indices(paths)
    members = tuple(pack_in_order(unsorted[place], order.to_numpy()) for place in range(len(months)))
    return paths.take(order), members


def _require_small(size: int) -> None:
    if size > PATHS_BYTES_MAX:
        raise BlockTooLarge(f"{size:,} bytes")


def _read_paths(group: Sequence[ProjectRows]) -> list[pa.Array]:
    with ThreadPoolExecutor(READ_THREADS, "blocks") as pool:
        return [table["path"].combine_chunks() for table in pool.map(lambda rows: rows.read(["path"]), group)]


def _cumulate(
    keys: Sequence[Key], months: Sequence[_Month], members: Sequence[Array], paths: int
) -> dict[Key, CumulativeCounts]:
    """Return the cumulated views of all months, for those of the keys that have any."""
    rows: dict[Key, Array] = {}
    with ThreadPoolExecutor(READ_THREADS, "blocks") as pool:
        for place, views in enumerate(pool.map(lambda month: month.views(keys), months)):
            ids = np.flatnonzero(np.unpackbits(members[place], count=paths))
            for key, each in views.items():
                if each.any():
                    rows.setdefault(key, np.zeros((len(months), paths), np.uint32))[place, ids] = each
    return {key: CumulativeCounts.of(rows.pop(key)) for key in sorted(rows)}


def _totals(part: Part, paths: int, project: str) -> dict[Key, Array]:
    """Return the views on the valid days of a month by path, for each source and traffic that has any."""
    _, path_ids, sources, views = rollup_rows.read_days(part, project)
    totals = {}
    for source, traffic in _KEYS:
        chosen = sources == source
        if views[traffic][chosen].any():
            totals[source, traffic] = np.zeros(paths, np.uint32)
            np.add.at(totals[source, traffic], path_ids[chosen], views[traffic][chosen])
    return totals


def _month(part: Part) -> str:
    return part.rollup.month
