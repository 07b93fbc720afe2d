"""Breakdowns: page views by the values of a dimension, most views first."""

import duckdb
import pyarrow as pa

_RANK = """
SELECT value, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(bot)::BIGINT AS bot,
       sum(human + ai)::BIGINT AS total
FROM counts
GROUP BY value
HAVING sum(human + ai + bot) > 0
ORDER BY total DESC, value NULLS LAST
"""


def rank(database: duckdb.DuckDBPyConnection, counts: pa.Table) -> pa.Table:
    """Return the rows of a breakdown: value, human, ai, bot and total, from `counts` of `warehouse.report.hit_counts`.

    The order is total descending, then the value in byte order; the row of unknown values, null, is after those with
    the same total. Values that only bots have are included.
    """
    with database.cursor() as cursor:
        cursor.register("counts", counts)
        return cursor.sql(_RANK).to_arrow_table()
