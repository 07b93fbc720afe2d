"""AI agents and other bots, each with its views and the day of its last view."""

import duckdb
import pyarrow as pa

from warehouse.report.grouping import DAY_S, TIME_UNITS, Grouping

_COLUMNS = ("agent", "operator", "purpose", "traffic")
_VALUES = ", ".join(f"'{name}': {name}" for name in _COLUMNS)
AGENT_DAYS = Grouping(f"{{{_VALUES}, 'day': {TIME_UNITS[DAY_S].hits}}}", "total", (*_COLUMNS, "day"))
"""Grouping by agent and UTC day, of which the first is that of ORIGIN_S."""
_LIST = """
SELECT value.agent AS agent, value.operator AS operator, value.purpose AS purpose, value.traffic AS traffic,
       sum(views)::BIGINT AS views, DATE '0001-01-01' + max(value.day)::INTEGER AS last_day
FROM (SELECT value, sum(ai + bot) AS views FROM counts WHERE value.traffic <> 'human' GROUP BY value HAVING views > 0)
GROUP BY ALL
ORDER BY views DESC, agent NULLS LAST, operator NULLS LAST, purpose NULLS LAST, traffic
"""


def list_agents(database: duckdb.DuckDBPyConnection, counts: pa.Table) -> pa.Table:
    """Return one row for each agent: agent, operator, purpose, traffic, views and last_day, most views first.

    `counts` are counts by AGENT_DAYS. `traffic` is ai or bot, and `last_day` the UTC day of the last view. `agent` is
    null in the row of the AI agents, and in that of the bots, whose name is unknown. An agent whose operator or purpose
    changed has a row for each.
    """
    with database.cursor() as cursor:
        cursor.register("counts", counts)
        return cursor.sql(_LIST).to_arrow_table()
