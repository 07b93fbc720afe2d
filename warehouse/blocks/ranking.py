"""Order of paths: most views first, then by path in byte order."""

import numpy as np

from warehouse.blocks.cumulative import Array


def candidates(totals: Array, count: int, sorted_columns: int) -> Array:
    """Return columns that include the first `count` ones in the order of a report. A total of 0 is left out.

    The first `sorted_columns` columns are sorted by path: those of equal totals that cannot be among the first are left
    out. A partial sort takes 1 ms for 1,000 of 1M columns; a full sort takes 60 ms.
    """
    count = min(count, int(np.count_nonzero(totals)))
    if count == 0:
        return np.zeros(0, np.intp)
    smallest = np.partition(totals, totals.size - count)[totals.size - count]
    larger = np.flatnonzero(totals > smallest)
    equal = np.flatnonzero(totals == smallest)
    first_unsorted = int(np.searchsorted(equal, sorted_columns))
    return np.concatenate([larger, equal[:first_unsorted][: count - larger.size], equal[first_unsorted:]])


def order(totals: Array, positions: Array) -> Array:
    """Return the indices that sort by total, largest first, then by position among the sorted paths."""
    return np.lexsort((positions, -totals.astype(np.int64)))
