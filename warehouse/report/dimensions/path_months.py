"""Rows of a dimension of the views of some paths in whole months, from the page views in rollups.

The page views of a path are counted by profile and day once, for all dimensions of a profile. The other dimensions are
counted from the page views.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.blocks.cumulative import Array
from warehouse.blocks.paths import Bounds
from warehouse.blocks.project import READERS, ProjectBlock
from warehouse.encoding import encoded
from warehouse.query.result_cache import ResultCache
from warehouse.report.dimensions.rows import (
    DAY_US,
    KEY,
    QUARTERS,
    VALUE,
    Column,
    DimensionRows,
    column_of,
    day_number,
    indices_of,
)
from warehouse.rollups.coverage import Rollup
from warehouse.rollups.schema import PROFILES, QUARTER_S, VIEW_VALUES, WITHOUT_AGENT

DENSE_COUNTERS = 1_000_000
"""Number of counters up to which page views are counted in an array with all combinations, and not in a hash table."""
BATCH_GROUPS = 8
"""Number of row groups that are counted at once, which limits the memory for many paths."""
GROUP_BYTES = 1_000
"""Memory of the metadata of a row group."""
_DAYS = 32
"""Number of days of a month, of which the first is 0 and has no views."""
_TOTAL, _BY_PROFILE = "total", "profile"
_KEY_WITHOUT_AGENT = ("source", "traffic", "format")
_NONE = np.zeros(0, np.int64)
_NO_VALUES = pa.schema(
    [("day", pa.uint8()), ("value", pa.dictionary(pa.int32(), pa.string())), ("key", pa.int64()), ("views", pa.int64())]
).empty_table()


@dataclass(frozen=True, slots=True)
class PathMonth:
    """Paths of a project in the rollup of a month, by the ids that the rollup has for them."""

    rollup: Rollup
    project: str
    ids: range


def of_block(block: ProjectBlock, bounds: Bounds | None, months: Collection[str]) -> list[PathMonth]:
    """Return the paths within bounds, or all paths, in some months (YYYY-MM) of a block, in the order of the months."""
    ids = block.paths.sorted_between(bounds)
    return [
        PathMonth(part.rollup, block.project, block.ids_between(index, ids))
        for index, part in enumerate(block.parts)
        if part.rollup.month in months
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Row groups of `path_views.parquet`: for each the first and last project, and the first and last path id."""

    metadata: pq.FileMetaData
    bounds: Sequence[tuple[str, str, int, int]]

    @property
    def nbytes(self) -> int:
        return GROUP_BYTES * len(self.bounds)


@dataclass(frozen=True, slots=True, eq=False)
class _Profiles:
    """Profiles of a month: the columns of PROFILES, with an item for each profile."""

    columns: Mapping[str, Column]

    @property
    def nbytes(self) -> int:
        return sum(each.codes.nbytes + int(each.texts.nbytes) for each in self.columns.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Views:
    """Page views by profile and day of the month, in the order of days."""

    profile_ids: Array
    days: Array
    views: Array

    @property
    def nbytes(self) -> int:
        return self.profile_ids.nbytes + self.days.nbytes + self.views.nbytes


def read(
    cached: ResultCache, months: Sequence[PathMonth], dimension: str, dense_counters: int = DENSE_COUNTERS
) -> list[DimensionRows]:
    """Return the rows of each month. Several months are read in parallel. `dense_counters` replaces DENSE_COUNTERS."""
    read_month = partial(_read_month, cached, dimension, dense_counters)
    if len(months) < 2:
        return [*map(read_month, months)]
    with ThreadPoolExecutor(READERS, "paths") as pool:
        return [*pool.map(read_month, months)]


def _read_month(cached: ResultCache, dimension: str, dense_counters: int, month: PathMonth) -> DimensionRows:
    profiles = _profiles(cached, month.rollup.profiles)
    key = ("paths", month.rollup.folder, month.project, month.ids)
    if dimension == _TOTAL or dimension in PROFILES.names:
        by_profile = cached((*key, _BY_PROFILE), partial(_count_profiles, cached, month, profiles, dense_counters))
        keys = {name: profiles.columns[name] for name in KEY}
        size = len(profiles.columns["source"].codes)
        unknown = Column(np.full(size, -1, np.int8), pa.array([], pa.string()))
        keys[VALUE] = unknown if dimension == _TOTAL else profiles.columns[dimension]
        first_day = day_number(f"{month.rollup.month}-01") - 1
        return DimensionRows(keys, by_profile.profile_ids, first_day, by_profile.days, by_profile.views)
    return cached((*key, dimension), partial(_count_values, cached, month, profiles, dimension, dense_counters))


def _count_profiles(cached: ResultCache, month: PathMonth, profiles: _Profiles, dense_counters: int) -> _Views:
    size = len(profiles.columns["source"].codes)
    codes, views = [_NONE], [_NONE]
    for rows in _read_views(cached, month, ("day", "profile_id")):
        of_rows = rows["day"].to_numpy().astype(np.int64) * size + rows["profile_id"].to_numpy()
        found, counts = _count(of_rows, _DAYS * size, dense_counters)
        codes.append(found)
        views.append(counts)
    days, profile_ids = np.divmod(np.concatenate(codes), max(size, 1))
    order = np.argsort(days, kind="stable")
    return _Views(_narrow(profile_ids[order]), days[order].astype(np.uint8), _narrow(np.concatenate(views)[order]))


def _count_values(
    cached: ResultCache, month: PathMonth, profiles: _Profiles, dimension: str, dense_counters: int
) -> DimensionRows:
    """Return the views by day, value and the columns of KEY that the dimension has."""
    name = "quarter" if dimension in QUARTERS else VIEW_VALUES[dimension]
    key_of_profile, keys = _keys(profiles, _KEY_WITHOUT_AGENT if dimension in WITHOUT_AGENT else KEY)
    batches = _read_views(cached, month, ("day", "profile_id", name))
    counted = pa.concat_tables([_NO_VALUES, *(_count_batch(rows, key_of_profile, dense_counters) for rows in batches)])
    values, key_ids = column_of(encoded(counted["value"])), counted["key"].to_numpy()
    combined = pa.array((values.codes + 1) * np.int64(max(len(keys["source"].codes), 1)) + key_ids).dictionary_encode()
    codes, ids = np.divmod(combined.dictionary.to_numpy(), max(len(keys["source"].codes), 1))
    columns = {each: Column(column.codes[ids], column.texts) for each, column in keys.items()}
    columns[VALUE] = Column(codes - 1, values.texts)
    days, first_day = counted["day"].to_numpy(), day_number(f"{month.rollup.month}-01") - 1
    order = np.argsort(days, kind="stable")
    views = counted["views"].to_numpy()[order]
    return DimensionRows(columns, _narrow(combined.indices.to_numpy()[order]), first_day, days[order], _narrow(views))


def _count_batch(rows: pa.Table, key_of_profile: Array, dense_counters: int) -> pa.Table:
    """Return the views by day, key and the last column of the rows, in the columns of _NO_VALUES."""
    values = rows[rows.column_names[-1]]
    column = column_of(encoded(values)) if pa.types.is_dictionary(values.type) else _quarters(values)
    width, size = int(key_of_profile.max(initial=0)) + 1, len(column.texts) + 1
    codes = (rows["day"].to_numpy().astype(np.int64) * size + column.codes + 1) * width
    codes += key_of_profile[rows["profile_id"].to_numpy()]
    codes, views = _count(codes, _DAYS * size * width, dense_counters)
    days, codes = np.divmod(codes, size * width)
    codes, keys = np.divmod(codes, width)
    texts = pa.DictionaryArray.from_arrays(indices_of(codes - 1), column.texts)
    return pa.table([days.astype(np.uint8), texts, keys, views], _NO_VALUES.schema)


def _quarters(column: pa.ChunkedArray) -> Column:
    texts = [str(number) for number in range(DAY_US // (QUARTER_S * 1_000_000))]
    return Column(column.to_numpy().astype(np.int64), pa.array(texts))


def _keys(profiles: _Profiles, names: Sequence[str]) -> tuple[Array, dict[str, Column]]:
    """Return the key of each profile, and the columns of KEY of the keys. Those not in `names` are null."""
    count = len(profiles.columns["source"].codes)
    combined, radices = np.zeros(count, np.int64), [len(profiles.columns[name].texts) + 1 for name in names]
    for name, radix in zip(names, radices, strict=True):
        combined = combined * radix + profiles.columns[name].codes + 1
    _, first, key_of_profile = np.unique(combined, return_index=True, return_inverse=True)
    unknown = Column(np.full(first.size, -1, np.int8), pa.array([], pa.string()))
    chosen = {name: replace(column, codes=column.codes[first]) for name, column in profiles.columns.items()}
    return key_of_profile, {name: chosen[name] if name in names else unknown for name in KEY}


def _count(codes: Array, size: int, dense_counters: int) -> tuple[Array, Array]:
    """Return the distinct codes, which are below `size`, and how often each occurs."""
    if size <= dense_counters:
        counts = np.bincount(codes, minlength=size)
        present = np.flatnonzero(counts)
        return present, counts[present]
    distinct = pa.array(codes).dictionary_encode()
    return distinct.dictionary.to_numpy(), np.bincount(distinct.indices.to_numpy())


def _profiles(cached: ResultCache, file: Path) -> _Profiles:
    def read() -> _Profiles:
        rows = pq.read_table(file, read_dictionary=PROFILES.names, use_threads=False)
        return _Profiles({name: column_of(encoded(rows[name])) for name in PROFILES.names})

    profiles: _Profiles = cached(("profiles", file), read)
    return profiles


def _read_views(cached: ResultCache, month: PathMonth, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of the page views of the paths of a month, a few row groups at a time."""
    file, ids = month.rollup.path_views, month.ids
    groups: _Groups = cached(("groups", file), partial(_groups, file))
    whole: list[int] = []
    cut: list[int] = []
    for number, (first_project, last_project, first, last) in enumerate(groups.bounds):
        if first_project <= month.project <= last_project and first < ids.stop and last >= ids.start:
            is_whole = first_project == last_project and first >= ids.start and last < ids.stop
            (whole if is_whole else cut).append(number)
    with pq.ParquetFile(
        file, metadata=groups.metadata, read_dictionary=["project_id", *VIEW_VALUES.values()]
    ) as source:
        for number in cut:
            group = source.read_row_group(number, ["project_id", "path_id", *columns], use_threads=False)
            yield _rows_of(group, month, columns)
        for start in range(0, len(whole), BATCH_GROUPS):
            yield source.read_row_groups(whole[start : start + BATCH_GROUPS], columns, use_threads=False)


def _groups(file: Path) -> _Groups:
    metadata = pq.read_metadata(file)
    bounds = []
    for number in range(metadata.num_row_groups):
        project, path_id = (metadata.row_group(number).column(index).statistics for index in (0, 1))
        bounds.append((project.min, project.max, path_id.min, path_id.max))
    return _Groups(metadata, bounds)


def _rows_of(group: pa.Table, month: PathMonth, columns: Sequence[str]) -> pa.Table:
    """Return the rows of the paths in a row group, which are adjacent."""
    ids = group["path_id"].to_numpy()
    is_wanted = (ids >= month.ids.start) & (ids < month.ids.stop)
    is_wanted &= pc.equal(group["project_id"], month.project).to_numpy()
    return group.select(columns).slice(int(np.argmax(is_wanted)), int(np.count_nonzero(is_wanted)))


def _narrow(numbers: Array) -> Array:
    """Return numbers, which are not negative, in the narrowest type."""
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))
