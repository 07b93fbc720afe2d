"""Rows of a dimension of the views of some paths in whole months, from the page views in rollups.

The page views of a path are counted by profile and day once, for all dimensions of a profile. The other dimensions are
counted from the page views.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from warehouse.blocks.cumulative import Array
from warehouse.blocks.project import READ_THREADS
from warehouse.encoding import encoded
from warehouse.query.result_cache import ResultCache
from warehouse.report.dimensions import page_views
from warehouse.report.dimensions.count import is_peoples_markdown
from warehouse.report.dimensions.page_views import PathMonth, Profiles
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
    narrow,
)
from warehouse.rollups.schema import PROFILES, QUARTER_S, VIEW_VALUES, WITHOUT_AGENT

DENSE_COUNTERS = 1_000_000
"""Number of counters up to which page views are counted in an array with all combinations, and not in a hash table."""
_DAYS = 32
"""Number of values of a day of the month, 0 to 31. No view is of day 0."""
_TOTAL, _BY_PROFILE = "total", "profile"
_KEY_WITHOUT_AGENT = ("source", "traffic", "format")
_NONE = np.zeros(0, np.int64)
_NO_VALUES = pa.schema(
    [("day", pa.uint8()), ("value", pa.dictionary(pa.int32(), pa.string())), ("key", pa.int64()), ("views", pa.int64())]
).empty_table()


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
    with ThreadPoolExecutor(READ_THREADS, "paths") as pool:
        return [*pool.map(read_month, months)]


def _read_month(cached: ResultCache, dimension: str, dense_counters: int, month: PathMonth) -> DimensionRows:
    profiles = page_views.profiles(cached, month.rollup)
    key = ("paths", month.rollup.folder, month.project, month.ids, month.is_markdown)
    if dimension == _TOTAL or dimension in PROFILES.names:
        by_profile = cached((*key, _BY_PROFILE), partial(_count_profiles, cached, month, profiles, dense_counters))
        keys = {name: profiles.columns[name] for name in KEY}
        size = profiles.count
        unknown = Column(np.full(size, -1, np.int8), pa.array([], pa.string()))
        keys[VALUE] = unknown if dimension == _TOTAL else profiles.columns[dimension]
        first_day = day_number(f"{month.rollup.month}-01") - 1
        return DimensionRows(keys, by_profile.profile_ids, first_day, by_profile.days, by_profile.views)
    return cached((*key, dimension), partial(_count_values, cached, month, profiles, dimension, dense_counters))


def _is_wanted(month: PathMonth, profiles: Profiles) -> Array | None:
    return is_peoples_markdown(profiles.columns) if month.is_markdown else None


def _count_profiles(cached: ResultCache, month: PathMonth, profiles: Profiles, dense_counters: int) -> _Views:
    size = profiles.count
    codes, views = [_NONE], [_NONE]
    for rows in page_views.read(cached, month, ("day", "profile_id"), _is_wanted(month, profiles)):
        of_rows = rows["day"].to_numpy().astype(np.int64) * size + rows["profile_id"].to_numpy()
        of_part, counts = count_codes(of_rows, _DAYS * size, dense_counters)
        codes.append(of_part)
        views.append(counts)
    days, profile_ids = np.divmod(np.concatenate(codes), max(size, 1))
    order = np.argsort(days, kind="stable")
    return _Views(narrow(profile_ids[order]), days[order].astype(np.uint8), narrow(np.concatenate(views)[order]))


def _count_values(
    cached: ResultCache, month: PathMonth, profiles: Profiles, dimension: str, dense_counters: int
) -> DimensionRows:
    """Return the views by day, value and the columns of KEY that the dimension has."""
    name = "quarter" if dimension in QUARTERS else VIEW_VALUES[dimension]
    key_of_profile, keys = keys_of(profiles, _KEY_WITHOUT_AGENT if dimension in WITHOUT_AGENT else KEY)
    batches = page_views.read(cached, month, ("day", "profile_id", name), _is_wanted(month, profiles))
    counted = pa.concat_tables([_NO_VALUES, *(_count_batch(rows, key_of_profile, dense_counters) for rows in batches)])
    values, key_ids = column_of(encoded(counted["value"])), counted["key"].to_numpy()
    combined = pa.array((values.codes + 1) * np.int64(max(len(keys["source"].codes), 1)) + key_ids).dictionary_encode()
    codes, ids = np.divmod(combined.dictionary.to_numpy(), max(len(keys["source"].codes), 1))
    columns = {each: Column(column.codes[ids], column.texts) for each, column in keys.items()}
    columns[VALUE] = Column(codes - 1, values.texts)
    days, first_day = counted["day"].to_numpy(), day_number(f"{month.rollup.month}-01") - 1
    order = np.argsort(days, kind="stable")
    views = counted["views"].to_numpy()[order]
    return DimensionRows(columns, narrow(combined.indices.to_numpy()[order]), first_day, days[order], narrow(views))


def _count_batch(rows: pa.Table, key_of_profile: Array, dense_counters: int) -> pa.Table:
    """Return the views by day, key and the last column of the rows, in the columns of _NO_VALUES."""
    values = rows[rows.column_names[-1]]
    column = column_of(encoded(values)) if pa.types.is_dictionary(values.type) else _quarters(values)
    width, size = int(key_of_profile.max(initial=0)) + 1, len(column.texts) + 1
    codes = (rows["day"].to_numpy().astype(np.int64) * size + column.codes + 1) * width
    codes += key_of_profile[rows["profile_id"].to_numpy()]
    codes, views = count_codes(codes, _DAYS * size * width, dense_counters)
    days, codes = np.divmod(codes, size * width)
    codes, keys = np.divmod(codes, width)
    texts = pa.DictionaryArray.from_arrays(indices_of(codes - 1), column.texts)
    return pa.table([days.astype(np.uint8), texts, keys, views], _NO_VALUES.schema)


def _quarters(column: pa.ChunkedArray) -> Column:
    texts = [str(number) for number in range(DAY_US // (QUARTER_S * 1_000_000))]
    return Column(column.to_numpy().astype(np.int64), pa.array(texts))


def keys_of(profiles: Profiles, names: Sequence[str]) -> tuple[Array, dict[str, Column]]:
    """Return the key of each profile, and the columns of KEY of the keys. Those not in `names` are null."""
    count = profiles.count
    combined, radices = np.zeros(count, np.int64), [len(profiles.columns[name].texts) + 1 for name in names]
    for name, radix in zip(names, radices, strict=True):
        combined = combined * radix + profiles.columns[name].codes + 1
    _, first, key_of_profile = np.unique(combined, return_index=True, return_inverse=True)
    unknown = Column(np.full(first.size, -1, np.int8), pa.array([], pa.string()))
    chosen = {name: replace(column, codes=column.codes[first]) for name, column in profiles.columns.items()}
    return key_of_profile, {name: chosen[name] if name in names else unknown for name in KEY}


def count_codes(codes: Array, size: int, dense_counters: int) -> tuple[Array, Array]:
    """Return the distinct codes, which are below `size`, and how often each occurs."""
    if size <= dense_counters:
        counts = np.bincount(codes, minlength=size)
        present = np.flatnonzero(counts)
        return present, counts[present]
    distinct = pa.array(codes).dictionary_encode()
    return distinct.dictionary.to_numpy(), np.bincount(distinct.indices.to_numpy())
