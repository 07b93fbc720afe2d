"""Cumulated counts in little memory: any number of successive rows is added up by one subtraction.

Most paths have few views, and some have millions. The cumulated counts are stored modulo 2^8, 2^16 or 2^32: the
difference of two of them is exact if it is smaller than that. The few columns whose sum is larger are stored a second
time, in 32 or 64 bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_WIDTHS: tuple[type[np.unsignedinteger[Any]], ...] = (np.uint8, np.uint16, np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeCounts:
    """Cumulated counts of columns. Row r is the sum of the first r rows of `of`.

    `large` are the sorted columns whose counts are in `exact`; those in `small` are modulo a power of two.
    """

    small: Array
    large: Array
    exact: Array

    @classmethod
    def of(cls, rows: Array) -> "CumulativeCounts":
        """Return the cumulated counts of rows of counts, which are not negative."""
        sums = rows.sum(axis=0, dtype=np.int64)
        width = min(_WIDTHS, key=lambda each: _size(each, sums, len(rows)))
        small = np.zeros((len(rows) + 1, rows.shape[1]), width)
        np.cumsum(rows, axis=0, dtype=width, out=small[1:])
        large = np.flatnonzero(sums > np.iinfo(width).max).astype(np.uint32)
        exact = np.zeros((len(rows) + 1, large.size), _exact(sums))
        np.cumsum(rows[:, large], axis=0, dtype=exact.dtype, out=exact[1:])
        return cls(small, large, exact)

    @property
    def columns(self) -> int:
        return int(self.small.shape[1])

    @property
    def nbytes(self) -> int:
        return self.small.nbytes + self.large.nbytes + self.exact.nbytes

    def between(self, first: int, end: int, columns: slice, dtype: npt.DTypeLike) -> Array:
        """Return the sums of the rows with first <= row < end, for some columns."""
        sums = (self.small[end, columns] - self.small[first, columns]).astype(dtype)
        low, high = np.searchsorted(self.large, (columns.start, columns.stop))
        sums[self.large[low:high] - columns.start] = self.exact[end, low:high] - self.exact[first, low:high]
        return sums

    def rows(self, columns: Array) -> Array:
        """Return the rows of `of`, for some columns."""
        rows: Array = np.diff(self.small[:, columns], axis=0).astype(np.int64)
        is_large = np.isin(columns, self.large)
        rows[:, is_large] = np.diff(self.exact[:, np.searchsorted(self.large, columns[is_large])], axis=0)
        return rows


def _size(width: type[np.unsignedinteger[Any]], sums: Array, rows: int) -> int:
    """Return the number of bytes of the counts, if those that fit have this width."""
    large = np.count_nonzero(sums > np.iinfo(width).max)
    return rows * int(sums.size * np.dtype(width).itemsize + large * _exact(sums).itemsize)


def _exact(sums: Array) -> np.dtype[Any]:
    """Return a type of integers that can represent the largest sum."""
    return np.dtype(np.uint32 if sums.max(initial=0) <= np.iinfo(np.uint32).max else np.int64)
