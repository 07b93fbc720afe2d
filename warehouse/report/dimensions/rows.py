"""Rows of a dimension in memory: of days of a month, or of the hits at the edge of a range.

DuckDB takes 7 ms of processor time or more for each query of a rollup, and 3 ms for each query of an edge. A count of
the rows in memory takes 0.3 ms over 10M hits: see `warehouse.report.dimensions.count`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import prod

import numpy as np
import pyarrow as pa

from warehouse.blocks.cumulative import Array
from warehouse.encoding import encoded
from warehouse.rollups.schema import DIMENSION_KEY, DIMENSION_VALUES, QUARTER_S

VALUE = "value"
COLUMNS = (VALUE, *DIMENSION_KEY)
"""Columns of a key: a value of the dimension, and what it is counted by."""
KEY = (*DIMENSION_KEY, "format")
"""Columns of the keys of page views and of hits: a source policy depends on the format."""
DAY_US = 86_400_000_000
OBJECTS_BYTES = 10_000
"""Memory of the Python and Arrow objects of rows, without the contents of their arrays, in bytes."""
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


def of_hits(hits: pa.Table, dimension: str, shared: DimensionRows | None = None) -> DimensionRows:
    """Return rows of `edge_rows.read` as rows of a dimension. Each of them is a view and has its own key.

    `shared` is what `without_value` returns for the same hits.
    """
    shared = shared or without_value(hits)
    return replace(shared, keys={**shared.keys, VALUE: _values(hits, dimension)})


def without_value(hits: pa.Table) -> DimensionRows:
    """Return what the rows of all dimensions of the same hits have in common: all but the value."""
    keys = {name: column_of(encoded(hits[name])) for name in KEY}
    days = _time_us(hits) // DAY_US
    first = int(days.min(initial=days[0])) if days.size else 0
    ones = np.ones(hits.num_rows, np.uint8)
    return DimensionRows(keys, np.arange(hits.num_rows), first + EPOCH_DAY, narrow(days - first), ones)


def day_number(day: str) -> int:
    """Return the number of days from the first day of the year 1."""
    return date.fromisoformat(day).toordinal() - 1


def _values(hits: pa.Table, dimension: str) -> Column:
    """Return the value of each hit as its text in a rollup."""
    if dimension == "total":
        return Column(np.full(hits.num_rows, -1), pa.array([], pa.string()))
    if dimension in QUARTERS:
        texts = [str(number) for number in range(DAY_US // (QUARTER_S * 1_000_000))]
        return Column(_time_us(hits) % DAY_US // (QUARTER_S * 1_000_000), pa.array(texts))
    column = encoded(hits[DIMENSION_VALUES[dimension].removesuffix("::VARCHAR")])
    return column_of(column if pa.types.is_dictionary(column.type) else column.cast(pa.string()).dictionary_encode())


def _time_us(hits: pa.Table) -> Array:
    times: Array = hits["ts"].combine_chunks().cast(pa.int64()).to_numpy()
    return times


def narrow(numbers: Array) -> Array:
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


def distinct(columns: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Return the index of the combination of codes of each item, and the codes of each combination by column.

    A code is -1 or more. The combinations are in the order in which they first occur.
    """
    radices = [int(each.max(initial=-1)) + 2 for each in columns]
    # In place, and in 32 bits where they suffice: an array of a million items adds 8 MB to the peak of the memory.
    combined: Array = np.zeros(columns[0].size, np.int32 if prod(radices) < 1 << 31 else np.int64)
    for column, radix in zip(columns, radices, strict=True):
        combined *= radix
        combined += column
        combined += 1
    combinations = pa.array(combined).dictionary_encode()
    remaining, codes = combinations.dictionary.to_numpy(), []
    for radix in reversed(radices):
        remaining, of_column = np.divmod(remaining, radix)
        codes.append(of_column - 1)
    return combinations.indices.to_numpy(), codes[::-1]
