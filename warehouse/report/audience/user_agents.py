"""Most frequent user agents of people, AI agents or other bots, each with the rule that decided."""

import duckdb
import pyarrow as pa

from warehouse.query import engine
from warehouse.report.grouping import Grouping

DAYS = 7
"""Maximum number of UTC days that are read: `hits` is the only table with user agents."""
USER_AGENTS = Grouping("{'user_agent': user_agent, 'rule': rule, 'agent': agent}")
_COLUMNS = {"human": "human", "ai": "ai", "bot": "bot", None: "human + ai + bot"}
"""Column of the counts by traffic."""
_RANK = """
SELECT value.user_agent AS user_agent, value.rule AS rule, value.agent AS agent, sum({views})::BIGINT AS views
FROM counts
GROUP BY ALL
HAVING views > 0
ORDER BY views DESC, user_agent, rule, agent NULLS LAST
LIMIT $limit
"""


def rank(database: duckdb.DuckDBPyConnection, counts: pa.Table, traffic: str | None, limit: int) -> pa.Table:
    """Return the user agents with most views: user_agent, rule, agent and views. None is any traffic.

    `counts` are counts by USER_AGENTS. User agents with equal views are in byte order. A user agent whose rule changed
    has a row for each rule.
    """
    with engine.interruptible_cursor(database) as cursor:
        cursor.register("counts", counts)
        return cursor.sql(_RANK.format(views=_COLUMNS[traffic]), params={"limit": limit}).to_arrow_table()
