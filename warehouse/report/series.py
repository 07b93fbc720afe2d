"""Series: page views by time buckets, with a row of zeros for each bucket without a view."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.dimensions import QUARTER_S
from warehouse.report.time_buckets import Bucket

DAY_S = 86_400
UNITS = {DAY_S: ("day",), QUARTER_S: ("day", "quarter"), 1: ("second",)}
"""Dimensions of time by the length of their unit, in seconds."""
_COUNTS = ("human", "ai", "bot")


def unit(buckets: Sequence[Bucket]) -> tuple[str, ...]:
    """Return the dimensions of the longest unit of time in which all buckets begin."""
    return next(names for unit_s, names in UNITS.items() if all(bucket.start_s % unit_s == 0 for bucket in buckets))


def series(buckets: Sequence[Bucket], counts: pa.Table, measures: Iterable[str] = _COUNTS) -> pa.Table:
    """Return one row for each bucket: start, the sums of measures, and `total` of people and AI if it is none of them.

    `counts` are counts by the `unit` of the buckets. Every time is within a bucket.
    """
    # Without the start of the first bucket: a local day of the year 1 may begin before the first instant.
    starts_s = np.array([bucket.start_s for bucket in buckets[1:]])
    index = np.searchsorted(starts_s, _seconds(counts), side="right")
    columns = {name: _add_up(index, counts[name].to_numpy(), len(buckets)) for name in measures}
    starts = pa.array([bucket.label for bucket in buckets], pa.string())
    columns.setdefault("total", columns["human"] + columns["ai"])
    return pa.table({"start": starts, **columns})


def _seconds(counts: pa.Table) -> npt.NDArray[np.int64]:
    """Return the times of counts in seconds since 1970."""
    if "second" in counts.column_names:
        return _numbers(counts["second"])
    seconds = _numbers(counts["day"].cast(pa.int32())) * DAY_S
    return seconds + _numbers(counts["quarter"]) * QUARTER_S if "quarter" in counts.column_names else seconds


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = pc.cast(column, pa.int64()).to_numpy()
    return numbers


def _add_up(index: npt.NDArray[np.int64], views: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, index, views)
    return sums
