"""AI agents and other bots, each with its views and the day of its last view."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = ("agent", "operator", "purpose", "traffic")


def list_agents(counts: pa.Table) -> pa.Table:
    """Return one row for each agent: agent, operator, purpose, traffic, views and last_day, most views first.

    `counts` are counts by COLUMNS and day. `traffic` is ai or bot, and `last_day` the UTC day of the last view. `agent`
    is null in the row of the AI agents, and in that of the bots, whose name is unknown. An agent whose operator or
    purpose changed has a row for each.
    """
    by_day = of_machines(counts)
    sums = by_day.group_by([*COLUMNS], use_threads=False).aggregate([("views", "sum"), ("day", "max")])
    rows = sums.rename_columns({"views_sum": "views", "day_max": "last_day"}).select([*COLUMNS, "views", "last_day"])
    return most_viewed_first(rows, COLUMNS)


def of_machines(counts: pa.Table) -> pa.Table:
    """Return the counts of AI agents and bots, with the column `views` in place of human, ai and bot."""
    views = pc.add(counts["ai"], counts["bot"])
    return counts.drop_columns(["human", "ai", "bot"]).append_column("views", views).filter(pc.field("views") > 0)


def most_viewed_first(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return rows in the order of their views, and those with equal views in the order of columns, null last."""
    return rows.sort_by([("views", "descending"), *((name, "ascending") for name in columns)])
