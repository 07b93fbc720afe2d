"""Series: page views by time buckets, with a row of zeros for each bucket without a view."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from warehouse.report.grouping import ORIGIN_S, TIME_UNITS
from warehouse.report.time_buckets import Bucket

_COUNTS = ("human", "ai", "bot")


def unit_s(buckets: Sequence[Bucket]) -> int:
    """Return the longest unit of time, in seconds, in which all buckets begin: a key of TIME_UNITS."""
    return next(unit for unit in TIME_UNITS if all(bucket.start_s % unit == 0 for bucket in buckets))


def series(buckets: Sequence[Bucket], counts: pa.Table) -> pa.Table:
    """Return one row for each bucket: start, human, ai, bot and total.

    `counts` are counts of `warehouse.report.hit_counts` by the unit of the buckets. Every value is within a bucket.
    """
    unit = unit_s(buckets)
    first_units = np.array([(bucket.start_s - ORIGIN_S) // unit for bucket in buckets])
    index = np.searchsorted(first_units, counts["value"].to_numpy(), side="right") - 1
    columns = {name: _add_up(index, counts[name].to_numpy(), len(buckets)) for name in _COUNTS}
    starts = pa.array([bucket.label for bucket in buckets], pa.string())
    return pa.table({"start": starts, **columns, "total": columns["human"] + columns["ai"]})


def _add_up(index: np.ndarray, views: np.ndarray, length: int) -> np.ndarray:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, index, views)
    return sums
