"""Most frequent user agents of people, AI agents or other bots, each with the rule that decided."""

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.report.audience.agents import most_viewed_first

DAYS = 7
"""Maximum number of UTC days that are read: `hits` is the only table with user agents."""
COLUMNS = ("userAgent", "rule", "agent")


def rank(counts: pa.Table, traffic: str | None, limit: int) -> pa.Table:
    """Return the user agents with most views: user_agent, rule, agent and views. None is any traffic.

    `counts` are counts by COLUMNS. User agents with equal views are in byte order. A user agent whose rule changed has
    a row for each rule.
    """
    human, ai, bot = (counts[name] for name in ("human", "ai", "bot"))
    views = counts[traffic] if traffic else pc.add(pc.add(human, ai), bot)
    rows = counts.select(COLUMNS).rename_columns(["user_agent", "rule", "agent"]).append_column("views", views)
    return most_viewed_first(rows.filter(pc.field("views") > 0), ("user_agent", "rule", "agent")).slice(0, limit)
