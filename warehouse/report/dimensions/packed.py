"""Rows of the dimensions of a month, packed into one bit for each day and key, and one byte for each row.

The dimensions of a small project share their arrays, because an array of few items is smaller than its Python object.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.cumulative import Array
from warehouse.blocks.months import DAYS
from warehouse.encoding import encoded
from warehouse.report.dimensions.rows import (
    COLUMNS,
    VALUE,
    Column,
    DimensionRows,
    column_of,
    day_number,
    distinct,
    narrow,
)
from warehouse.rollups.schema import DIMENSION_KEY

OBJECTS_BYTES = 3_000
"""Memory of the Python and Arrow objects of a month, without the contents of its arrays, in bytes."""
LARGE_VIEWS = 255
"""Minimum number of views of a row that is stored in `large_views`, in 32 bits."""
CELLS = 1_000_000
"""Maximum number of pairs of a day and a key whose views are sorted at once."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedMonth:
    """Views by day and key of some dimensions of a project in a month.

    A key has a value of one dimension and a group, which is a combination of the columns of DIMENSION_KEY. `values` are
    the codes of the values, and a row of `groups` has the codes of a column: indices in the texts of the dimension or
    column, or -1 for null. These texts are one after the other in `texts`; `text_starts` has the first of each.

    `bits` has for each dimension and day a bit for each key, which is 1 if the key has views. A row is such a bit.
    `views` are those of each row, or LARGE_VIEWS for the rows `large`, whose views are `large_views`. `starts` has the
    first key, byte of bits and row of each dimension, and those after the last one.
    """

    dimensions: tuple[str, ...]
    starts: Array
    first_day: int
    texts: pa.Array
    text_starts: Array
    values: Array
    group_ids: Array
    groups: Array
    bits: Array
    views: Array
    large: Array
    large_views: Array

    @property
    def nbytes(self) -> int:
        keys = (self.starts, self.text_starts, self.values, self.group_ids, self.groups)
        content = sum(each.nbytes for each in (*keys, self.bits, self.views, self.large, self.large_views))
        return OBJECTS_BYTES + content + int(self.texts.nbytes)

    def column(self, index: int, codes: Array) -> Column:
        """Return a column with some codes. `index` is that of the dimension or column among the text_starts."""
        first, end = self.text_starts[index : index + 2].tolist()
        return Column(codes, self.texts[first:end])

    def views_of(self, rows: slice) -> Array:
        """Return the views of some rows."""
        views = self.views[rows]
        first, end = np.searchsorted(self.large, (rows.start, rows.stop))
        if first < end:
            views = views.astype(np.uint32)
            views[self.large[first:end] - rows.start] = self.large_views[first:end]
        return views


@dataclass(frozen=True, slots=True)
class PackedDimension:
    """One of the dimensions of a packed month."""

    month: PackedMonth
    dimension: str

    def on(self, days: Sequence[str]) -> DimensionRows:
        """Return the rows of some days (YYYY-MM-DD) in order, at least one."""
        month, index = self.month, self.month.dimensions.index(self.dimension)
        (key, byte, row), (end_key, end_byte, _) = month.starts[index : index + 2].tolist()
        keys = end_key - key
        bits = month.bits[byte:end_byte].reshape(DAYS, -(-keys // 8))
        rows_of_day = np.bitwise_count(bits).sum(axis=1, dtype=np.intp)
        within = slice(int(days[0][-2:]) - 1, int(days[-1][-2:]))
        cells = np.flatnonzero(np.unpackbits(bits[within], axis=1, count=keys).view(bool))
        key_ids = cells - np.repeat(np.arange(within.stop - within.start) * keys, rows_of_day[within])
        numbers = np.repeat(np.arange(1, DAYS + 1, dtype=np.uint8)[within], rows_of_day[within])
        row += int(rows_of_day[: within.start].sum())
        views = month.views_of(slice(row, row + cells.size))
        columns = self._columns(index, slice(key, end_key))
        return DimensionRows(columns, key_ids, month.first_day, numbers, views).on(days)

    def _columns(self, dimension: int, keys: slice) -> dict[str, Column]:
        """Return the columns of keys of the dimension."""
        month, group_ids = self.month, self.month.group_ids[keys]
        count = len(month.dimensions)
        key = {
            name: month.column(count + index, month.groups[index][group_ids])
            for index, name in enumerate(DIMENSION_KEY)
        }
        return {VALUE: month.column(dimension, month.values[keys]), **key}


def pack(rows: pa.Table, month: str, dimensions: Sequence[str], cells_at_once: int = CELLS) -> PackedMonth:
    """Return the rows of some dimensions in the file of a rollup, in the order of the file. `month` is YYYY-MM.

    `dimensions` are in order, and include those of all rows. `cells_at_once` replaces CELLS.
    """
    value, *key = (column_of(encoded(rows[name])) for name in COLUMNS)
    names = column_of(encoded(rows["dimension"]))
    numbers = pc.index_in(names.texts, pa.array(dimensions)).fill_null(-1).to_numpy()[names.codes]
    group_ids, groups = distinct([each.codes for each in key])
    key_ids, (of_dimension, values, of_group) = distinct([numbers, value.codes, group_ids])
    keys, ends = (_starts(each, len(dimensions)) for each in (of_dimension, numbers))
    of_values = [_used(value, values[first:end]) for first, end in pairwise(keys)]
    of_groups = [_used(column, codes) for column, codes in zip(key, groups, strict=True)]
    cells = [
        _cells(rows.slice(first, end - first), key_ids[first:end] - first_key, end_key - first_key, cells_at_once)
        for (first_key, end_key), (first, end) in zip(pairwise(keys), pairwise(ends), strict=True)
    ]
    bits, views = [each for each, _ in cells], np.concatenate([each for _, each in cells])
    large = np.flatnonzero(views >= LARGE_VIEWS)
    texts = [each for each, _ in (*of_values, *of_groups)]
    return PackedMonth(
        tuple(dimensions),
        np.array([keys, np.cumsum([0, *(each.size for each in bits)]), ends], np.int32).T,
        day_number(f"{month}-01") - 1,
        pa.concat_arrays(texts),
        np.cumsum([0, *map(len, texts)], dtype=np.int32),
        np.concatenate([codes for _, codes in of_values]),
        narrow(of_group),
        np.stack([codes for _, codes in of_groups]),
        np.concatenate(bits),
        np.minimum(views, LARGE_VIEWS).astype(np.uint8),
        large.astype(np.int32),
        views[large],
    )


def _starts(numbers: Array, count: int) -> list[int]:
    """Return the index of the first item of each number below `count`, and the end. The numbers are in order."""
    starts: list[int] = np.searchsorted(numbers, np.arange(count + 1)).tolist()
    return starts


def _cells(rows: pa.Table, key_ids: Array, keys: int, cells_at_once: int) -> tuple[Array, Array]:
    """Return the bits of rows of a dimension, which are in the order of days, and their views in the order of bits."""
    days, views = rows["day"].to_numpy(), rows["views"].to_numpy()
    days_at_once = max(1, cells_at_once // max(1, keys))
    bits, in_order = [], []
    for first in range(1, DAYS + 1, days_at_once):
        end = min(first + days_at_once, DAYS + 1)
        some = slice(*np.searchsorted(days, (first, end)).tolist())
        cells = np.zeros((end - first, keys), np.uint32)
        cells[days[some].astype(np.intp) - first, key_ids[some]] = views[some]
        bits.append(np.packbits(cells > 0, axis=1).ravel())
        in_order.append(cells[cells > 0])
    return np.concatenate(bits), np.concatenate(in_order)


def _used(column: Column, codes: Array) -> tuple[pa.Array, Array]:
    """Return the texts of a column that `codes` use, and `codes` as indices of these texts.

    The column also has texts of other dimensions and projects: those of its row group.
    """
    used, index = np.unique(np.concatenate([[-1], codes]), return_inverse=True)
    return column.texts.take(pa.array(used[1:])), (index[1:] - 1).astype(np.min_scalar_type(-used.size))
