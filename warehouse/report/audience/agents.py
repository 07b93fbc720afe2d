"""AI agents and other bots: their views, the verdicts of the verification on them, and the most frequent user agents.

A request in the name of an agent that is not from this agent is `spoofed`: its traffic is `bot`, its agent the name.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = ("agent", "operator", "purpose", "traffic")
STATES = (*COLUMNS, "verification")
EVIDENCE = (*STATES, "verifiedBy")
USER_AGENTS = ("userAgent", "rule", "agent")
EVIDENCE_DAYS = 7
"""Maximum number of UTC days of user agents and of evidence: `hits` is the only table that has user agents."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Requests of AI agents and other bots by state, and those with evidence by the evidence, most views first.

    `states` has the columns agent, operator, purpose, traffic, verification and views. `evidence` has verified_by, too,
    and only the last EVIDENCE_DAYS days of the range.
    """

    states: pa.Table
    evidence: pa.Table


def list_agents(counts: pa.Table) -> pa.Table:
    """Return one row for each agent: agent, operator, purpose, traffic, views and last_day, most views first.

    `counts` are counts by COLUMNS and day. `traffic` is ai or bot, and `last_day` the UTC day of the last view. `agent`
    is null in the row of the AI agents, and in that of the bots, whose name is unknown. An agent whose operator or
    purpose changed has a row for each.
    """
    sums = of_machines(counts).group_by([*COLUMNS], use_threads=False).aggregate([("views", "sum"), ("day", "max")])
    rows = sums.rename_columns({"views_sum": "views", "day_max": "last_day"}).select([*COLUMNS, "views", "last_day"])
    return most_viewed_first(rows, COLUMNS)


def of_machines(counts: pa.Table) -> pa.Table:
    """Return the counts of AI agents and bots, with the column `views` in place of human, ai and bot."""
    views = pc.add(counts["ai"], counts["bot"])
    return counts.drop_columns(["human", "ai", "bot"]).append_column("views", views).filter(pc.field("views") > 0)


def most_viewed_first(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return rows in the order of their views, and those with equal views in the order of columns, null last."""
    return rows.sort_by([("views", "descending"), *((name, "ascending") for name in columns)])


def verdicts(states: pa.Table, evidence: pa.Table) -> Verdicts:
    """Return the verdicts. `states` are counts by STATES, and `evidence` counts by EVIDENCE of the last days."""
    known = of_machines(evidence).rename_columns({"verifiedBy": "verified_by"})
    known = known.filter(pc.field("verified_by").is_valid())
    return Verdicts(most_viewed_first(of_machines(states), STATES), most_viewed_first(known, (*STATES, "verified_by")))


def rank_user_agents(counts: pa.Table, traffic: str | None, limit: int) -> pa.Table:
    """Return the user agents with most views: user_agent, rule, agent and views. None is any traffic.

    `counts` are counts by USER_AGENTS. Equal ones are in byte order. A user agent whose rule changed has
    a row for each rule.
    """
    human, ai, bot = (counts[name] for name in ("human", "ai", "bot"))
    views = counts[traffic] if traffic else pc.add(pc.add(human, ai), bot)
    rows = counts.select(USER_AGENTS).rename_columns(["user_agent", "rule", "agent"]).append_column("views", views)
    return most_viewed_first(rows.filter(pc.field("views") > 0), ("user_agent", "rule", "agent")).slice(0, limit)
