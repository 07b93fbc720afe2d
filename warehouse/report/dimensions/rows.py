"""Rows of a dimension in memory: of a month from a rollup, or of the hits at the edge of a range.

DuckDB takes 7 ms of processor time or more for each query of a rollup, and 3 ms for each query of an edge. A count of
the rows in memory takes 0.3 ms over 10M hits: see `warehouse.report.dimensions.count`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.cumulative import Array
from warehouse.encoding import encoded
from warehouse.rollups import sorted_rows
from warehouse.rollups.schema import DIMENSION_KEY, DIMENSION_VALUES, QUARTER_S

VALUE = "value"
COLUMNS = (VALUE, *DIMENSION_KEY)
"""Columns of a key: a value of the dimension, and what it is counted by."""
KEY = (*DIMENSION_KEY, "format")
"""Columns of the keys of page views and of hits: a source policy depends on the format."""
_STORED = (*COLUMNS, "day", "views")
DAY_US = 86_400_000_000
OBJECTS_BYTES = 10_000
"""Memory of the Python and Arrow objects of rows, without the contents of their arrays: most rows of small projects."""
EPOCH_DAY = date(1970, 1, 1).toordinal() - 1
"""Number of 1970-01-01. Days are numbered from the first day of the year 1."""
QUARTERS = ("quarter", "agentQuarter")
"""Dimensions whose values are the quarters of an hour of a UTC day."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of texts: for each item its index in `texts`, or -1 for null."""

    codes: Array
    texts: pa.Array

    def at(self, codes: Array) -> pa.Array:
        """Return the texts of other items by their codes."""
        return self.texts.take(indices_of(codes))


@dataclass(frozen=True, slots=True, eq=False)
class DimensionRows:
    """Views by key and day. `keys` are the COLUMNS of the keys, with an item for each key.

    The arrays have an item for each row: the index of its key, the number of days since `first_day`, and its views.
    Their types are narrow: a month of 8 million hits has 370,000 rows by referrer, in 2 MB.
    """

    keys: Mapping[str, Column]
    key_ids: Array
    first_day: int
    days: Array
    views: Array

    @property
    def nbytes(self) -> int:
        columns = sum(each.codes.nbytes + int(each.texts.nbytes) for each in self.keys.values())
        return OBJECTS_BYTES + columns + self.key_ids.nbytes + self.days.nbytes + self.views.nbytes

    def on(self, days: Sequence[str]) -> "DimensionRows":
        """Return the rows of some days (YYYY-MM-DD) in order, of rows that are in the order of days."""
        numbers = np.array([day_number(day) - self.first_day for day in days])
        first, end = np.searchsorted(self.days, [numbers[0], numbers[-1] + 1])
        rows: slice | Array = slice(first, end)
        if numbers[-1] - numbers[0] + 1 != numbers.size:
            rows = first + np.flatnonzero(np.isin(self.days[first:end], numbers))
        return replace(self, key_ids=self.key_ids[rows], days=self.days[rows], views=self.views[rows])


def read_month(file: str, month: str, project: str, dimension: str) -> DimensionRows:
    """Return the rows of a project from the file of dimensions of a rollup. `month` is that of the rollup (YYYY-MM)."""
    wanted = {"project_id": project, "dimension": dimension}
    return _of_month(sorted_rows.read(Path(file), wanted, _STORED, COLUMNS), month)


def read_dimensions(file: str, month: str, project: str, dimensions: Collection[str]) -> dict[str, DimensionRows]:
    """Return the rows of several dimensions. They are read at once, because small projects share their row groups."""
    rows = sorted_rows.read(Path(file), {"project_id": project}, ("dimension", *_STORED), COLUMNS)
    stored = rows.select(_STORED)
    result = {}
    for dimension in dimensions:
        is_wanted = pc.equal(rows["dimension"], dimension)
        first, count = pc.index(is_wanted, True).as_py(), pc.sum(is_wanted).as_py() or 0
        result[dimension] = _of_month(stored.slice(max(first, 0), count), month)
    return result


def _of_month(rows: pa.Table, month: str) -> DimensionRows:
    columns = {name: column_of(encoded(rows[name])) for name in COLUMNS}
    codes, radices = np.zeros(rows.num_rows, np.int64), [len(each.texts) + 1 for each in columns.values()]
    for column, radix in zip(columns.values(), radices, strict=True):
        codes = codes * radix + column.codes + 1
    key_ids = pa.array(codes).dictionary_encode()
    remaining, keys = key_ids.dictionary.to_numpy(), {}
    for name, radix in reversed([*zip(columns, radices, strict=True)]):
        remaining, of_key = np.divmod(remaining, radix)
        keys[name] = _without_others(of_key - 1, columns[name].texts)
    return DimensionRows(
        keys,
        _narrow(key_ids.indices.to_numpy()),
        day_number(f"{month}-01") - 1,
        rows["day"].to_numpy().copy(),  # a slice would keep the days of the whole row group in memory
        _narrow(rows["views"].to_numpy()),
    )


def of_hits(hits: pa.Table, dimension: str) -> DimensionRows:
    """Return rows of `edge_rows.read` as rows of a dimension. Each of them is a view and has its own key."""
    time_us = hits["ts"].combine_chunks().cast(pa.int64()).to_numpy()
    keys = {name: column_of(encoded(hits[name])) for name in KEY}
    keys[VALUE] = _values(hits, dimension, time_us)
    days = time_us // DAY_US
    first = int(days.min(initial=days[0])) if days.size else 0
    ones = np.ones(hits.num_rows, np.uint8)
    return DimensionRows(keys, np.arange(hits.num_rows), first + EPOCH_DAY, _narrow(days - first), ones)


def day_number(day: str) -> int:
    """Return the number of days from the first day of the year 1."""
    return date.fromisoformat(day).toordinal() - 1


def _values(hits: pa.Table, dimension: str, time_us: Array) -> Column:
    """Return the value of each hit as its text in a rollup."""
    if dimension == "total":
        return Column(np.full(hits.num_rows, -1), pa.array([], pa.string()))
    if dimension in QUARTERS:
        texts = [str(number) for number in range(DAY_US // (QUARTER_S * 1_000_000))]
        return Column(time_us % DAY_US // (QUARTER_S * 1_000_000), pa.array(texts))
    column = encoded(hits[DIMENSION_VALUES[dimension].removesuffix("::VARCHAR")])
    return column_of(column if pa.types.is_dictionary(column.type) else column.cast(pa.string()).dictionary_encode())


def _without_others(codes: Array, texts: pa.Array) -> Column:
    """Return a column without the texts that no item has: a row group has those of other dimensions, too."""
    used, index = np.unique(np.concatenate([[-1], codes]), return_inverse=True)
    return Column((index[1:] - 1).astype(np.min_scalar_type(-used.size)), texts.take(pa.array(used[1:])))


def _narrow(numbers: Array) -> Array:
    """Return numbers, which are not negative, in the narrowest type."""
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))


def indices_of(codes: Array) -> pa.Array:
    """Return codes as indices, and null for those below 0.

    A null index is stored as 0, because Arrow uses the stored numbers of null indices when it unifies dictionaries:
    with -1 it would read memory before an array.
    """
    return pa.array(np.maximum(codes, 0).astype(np.int32), mask=codes < 0)


def column_of(column: pa.DictionaryArray) -> Column:
    return Column(column.indices.fill_null(-1).to_numpy(), column.dictionary)
