"""Verdicts of the verification: requests in the names of agents by state, and the evidence of the last days.

A request in the name of an agent that is not from this agent is `spoofed`: its traffic is `bot`, its agent the name.
"""

from dataclasses import dataclass

import pyarrow as pa

from warehouse.report.audience.agents import add_up, most_viewed_first
from warehouse.report.dimensions import count
from warehouse.report.filters import VERIFICATION
from warehouse.report.grouping import Grouping

DAYS = 7
"""Maximum number of UTC days whose evidence is read: `hits` is the only table that has it."""
_COLUMNS = ("agent", "operator", "purpose", "traffic")
_VALUES = ", ".join(f"'{name}': {name}" for name in _COLUMNS) + f", 'verification': {VERIFICATION}"
STATES = Grouping(f"{{{_VALUES}}}", "total", (*_COLUMNS, count.VERIFICATION))
"""Grouping by agent and state."""
EVIDENCE = Grouping(f"{{{_VALUES}, 'verified_by': verified_by}}", condition="verified_by IS NOT NULL")
"""Grouping by agent, state and evidence of the hits that have evidence."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Requests of AI agents and other bots by state, and those with evidence by the evidence, most views first.

    `states` has the columns agent, operator, purpose, traffic, verification and views. `evidence` has verified_by, too,
    and only the last DAYS days of the range.
    """

    states: pa.Table
    evidence: pa.Table

    @property
    def nbytes(self) -> int:
        return int(self.states.get_total_buffer_size() + self.evidence.get_total_buffer_size())


def read(states: pa.Table, evidence: pa.Table) -> Verdicts:
    """Return the verdicts. `states` are counts by STATES, and `evidence` counts by EVIDENCE of the last days."""
    columns = (*_COLUMNS, "verification")
    return Verdicts(_list(states, columns), _list(evidence, (*columns, "verified_by")))


def _list(counts: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    return most_viewed_first(add_up(counts, columns), columns)
