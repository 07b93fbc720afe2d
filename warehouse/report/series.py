"""Series: page views by time buckets, with a row of zeros for each bucket without a view."""

from collections.abc import Sequence
from datetime import date
from functools import partial

import numpy as np
import pyarrow as pa

from warehouse.blocks import selection
from warehouse.blocks.months import DAYS
from warehouse.control import policy
from warehouse.query.time_range import round_to_days
from warehouse.report.by_path.block_months import read_months
from warehouse.report.grouping import ORIGIN_S, TIME_UNITS
from warehouse.report.hit_counts import Scope
from warehouse.report.path_reports import DAILY_PATHS_MAX, PathReports
from warehouse.report.time_buckets import Bucket
from warehouse.rollups.coverage import Coverage

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


def count_days(by_path: PathReports, coverage: Coverage, scope: Scope) -> pa.Table | None:
    """Return the views by day on the whole UTC days that rollups count; None if another count is faster.

    The columns are those of `hit_counts.count_files`. `value` is the number of days since the year 1.
    """
    filters = scope.filters
    if filters.verification is not None:  # here it reads the page views of all paths, elsewhere those of these paths
        return None
    months = by_path.months(coverage, scope.project)
    block = months.block
    if block.paths.sorted_count > DAILY_PATHS_MAX and not filters.agents:
        return None
    chosen = selection.select(block.paths, filters.path_bounds, filters.source, filters.selected_traffic)
    numbers, views = [np.zeros(0, np.int64)], [np.zeros((len(_COUNTS), 0), np.int64)]
    for days in round_to_days(scope.time_range).whole_days:
        for span in policy.spans(filters.policy, days.start.date(), days.end.date()):
            by_month = block.days_by_month((span.start, span.end))
            by_day = partial(months.by_day, chosen, filters.by_hit, span.policy)
            for index, counted in read_months(by_day, [*by_month]).items():
                within = slice(by_month[index].start - 1, by_month[index].stop - 1)
                first = date.fromisoformat(f"{block.parts[index].rollup.month}-01").toordinal() - 1
                numbers.append(first + np.arange(DAYS)[within])
                views.append(counted[:, within])
    counts = dict(zip(_COUNTS, np.concatenate(views, axis=1), strict=True))
    return pa.table({"value": np.concatenate(numbers), **counts}).filter(pa.array(sum(counts.values()) > 0))


def _add_up(index: np.ndarray, views: np.ndarray, length: int) -> np.ndarray:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, index, views)
    return sums
