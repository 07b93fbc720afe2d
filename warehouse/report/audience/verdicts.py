"""Verdicts of the verification: requests in the names of agents by state, and the evidence of the last days.

A request in the name of an agent that is not from this agent is `spoofed`: its traffic is `bot`, its agent the name.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.report.audience import agents

DAYS = 7
"""Maximum number of UTC days whose evidence is read: `hits` is the only table that has it."""
STATES = (*agents.COLUMNS, "verification")
EVIDENCE = (*STATES, "verifiedBy")


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Requests of AI agents and other bots by state, and those with evidence by the evidence, most views first.

    `states` has the columns agent, operator, purpose, traffic, verification and views. `evidence` has verified_by, too,
    and only the last DAYS days of the range.
    """

    states: pa.Table
    evidence: pa.Table


def summarize(states: pa.Table, evidence: pa.Table) -> Verdicts:
    """Return the verdicts. `states` are counts by STATES, and `evidence` counts by EVIDENCE of the last days."""
    known = agents.of_machines(evidence).rename_columns({"verifiedBy": "verified_by"})
    known = known.filter(pc.field("verified_by").is_valid())
    return Verdicts(
        agents.most_viewed_first(agents.of_machines(states), STATES),
        agents.most_viewed_first(known, (*STATES, "verified_by")),
    )
