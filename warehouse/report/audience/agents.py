"""AI agents and other bots, each with its views and the day of its last view."""

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.report.grouping import DAY_S, TIME_UNITS, Grouping

_COLUMNS = ("agent", "operator", "purpose", "traffic")
_VALUES = ", ".join(f"'{name}': {name}" for name in _COLUMNS)
AGENT_DAYS = Grouping(f"{{{_VALUES}, 'day': {TIME_UNITS[DAY_S].hits}}}", "total", (*_COLUMNS, "day"))
"""Grouping by agent and UTC day. Days are numbered from ORIGIN_S."""
_FIRST_DAY = date(1, 1, 1).toordinal() - date(1970, 1, 1).toordinal()


def list_agents(counts: pa.Table) -> pa.Table:
    """Return one row for each agent: agent, operator, purpose, traffic, views and last_day, most views first.

    `counts` are counts by AGENT_DAYS. `traffic` is ai or bot, and `last_day` the UTC day of the last view. `agent` is
    null in the row of the AI agents, and in that of the bots, whose name is unknown. An agent whose operator or purpose
    changed has a row for each.
    """
    by_day = add_up(counts, (*_COLUMNS, "day")).filter(pc.field("traffic") != "human")
    sums = by_day.group_by([*_COLUMNS], use_threads=False).aggregate([("views", "sum"), ("day", "max")])
    days = pc.add(sums["day_max"], _FIRST_DAY).cast(pa.int32()).cast(pa.date32())
    rows = sums.select(_COLUMNS).append_column("views", sums["views_sum"]).append_column("last_day", days)
    return most_viewed_first(rows, _COLUMNS)


def add_up(counts: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the views by AI and bots of each combination of columns of the value that has any: columns and views.

    Arrow takes 1 ms of processor time, DuckDB 5 ms.
    """
    values = {name: pc.struct_field(counts["value"], name) for name in columns}
    rows = pa.table({**values, "views": pc.add(counts["ai"], counts["bot"])})
    sums = rows.group_by([*columns], use_threads=False).aggregate([("views", "sum")])
    return sums.rename_columns({"views_sum": "views"}).select([*columns, "views"]).filter(pc.field("views") > 0)


def most_viewed_first(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return rows in the order of their views, and those with equal views in the order of columns, null last."""
    return rows.sort_by([("views", "descending"), *((name, "ascending") for name in columns)])
