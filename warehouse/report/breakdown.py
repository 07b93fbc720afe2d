"""Breakdowns: page views by the values of a dimension, most views first."""

import pyarrow as pa
import pyarrow.compute as pc

_COUNTS = ("human", "ai", "bot")


def rank(counts: pa.Table) -> pa.Table:
    """Return the rows of a breakdown: value, human, ai, bot and total, from `counts` of `warehouse.report.hit_counts`.

    The order is total descending, then the value in byte order; the row of unknown values, null, is after those with
    the same total. Values that only bots have are included.
    """
    # Other threads do not help with so few rows, and waiting for them takes longer than the count.
    sums = counts.group_by("value", use_threads=False).aggregate([(name, "sum") for name in _COUNTS])
    human, ai, bot = (sums[f"{name}_sum"] for name in _COUNTS)
    total = pc.add(human, ai)
    rows = pa.table({"value": sums["value"], "human": human, "ai": ai, "bot": bot, "total": total})
    present = rows.filter(pc.greater(pc.add(total, bot), 0))
    return present.sort_by([("total", "descending"), ("value", "ascending")])
