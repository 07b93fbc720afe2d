"""Limit on a project's prompts: 100 creates and 100 messages in any hour.

The rows of the table of turns are counted, so the limit is exact across processes and restarts.
"""

import math
from dataclasses import dataclass

from agent.errors import QuotaExceeded
from agent.jobs.tables import STATEMENTS
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

USES_MAX = 100
WINDOW_S = 3600
WINDOW_US = WINDOW_S * 1_000_000
OPERATIONS = ("create", "message")


@dataclass(frozen=True, slots=True)
class Quota:
    """Remaining uses of an operation, and the seconds until the oldest counted use leaves the window."""

    operation: str
    remaining: int
    reset_s: int


def use(connection: Connection, project: str, operation: str, now_us: int, uses: int) -> Quota:
    """Return the quota after `uses` more uses, for turns that the same transaction inserts. Raises QuotaExceeded."""
    counted = {"project": project, "operation": operation, "since_us": now_us - WINDOW_US, "most": USES_MAX}
    newest = STATEMENTS.run(connection, "NEWEST_USES", counted).fetchall()
    oldest_us = newest[-1][0] if newest else now_us
    reset_s = max(1, math.ceil((oldest_us + WINDOW_US - now_us) / 1_000_000))
    if len(newest) + uses > USES_MAX:
        raise QuotaExceeded(
            f"the project used {operation} {USES_MAX} times within the last hour; retry in {reset_s} s",
            operation,
            reset_s,
        )
    return Quota(operation, USES_MAX - len(newest) - uses, reset_s)


def quotas(control: Pool, project: str, now_us: int) -> list[Quota]:
    with control.connect() as connection:
        return [use(connection, project, operation, now_us, 0) for operation in OPERATIONS]
