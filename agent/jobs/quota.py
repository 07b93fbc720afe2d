"""How often a project may ask for agents: so many creates, and so many messages, in any hour.

The turns themselves are what is counted, so that the limit holds across workers and restarts.
"""

import math
from dataclasses import dataclass

import sqlalchemy as sa

from agent.errors import QuotaExceeded
from agent.jobs.tables import TURNS

USES_MAX = 100
WINDOW_S = 3600
WINDOW_US = WINDOW_S * 1_000_000
OPERATIONS = ("create", "message")


@dataclass(frozen=True, slots=True)
class Quota:
    """Remaining uses of an operation, and the seconds until the oldest counted use leaves the window."""

    operation: str
    left: int
    reset_s: int


def use(connection: sa.Connection, project: str, operation: str, now_us: int, uses: int) -> Quota:
    """What is left after so many more uses, which the caller notes by its turns in the same transaction.

    Raises:
        QuotaExceeded: with the seconds until one more is possible.
    """
    counted = sa.select(TURNS.c.created_us).where(
        TURNS.c.project_id == project, TURNS.c.operation == operation, TURNS.c.created_us > now_us - WINDOW_US
    )
    newest = connection.execute(counted.order_by(TURNS.c.created_us.desc()).limit(USES_MAX)).scalars().all()
    oldest_us = newest[-1] if newest else now_us
    reset_s = max(1, math.ceil((oldest_us + WINDOW_US - now_us) / 1_000_000))
    if len(newest) + uses > USES_MAX:
        raise QuotaExceeded(
            f"the project has used {operation} {USES_MAX} times within the hour; one more is possible in {reset_s} s",
            operation,
            reset_s,
        )
    return Quota(operation, USES_MAX - len(newest) - uses, reset_s)


def remaining(engine: sa.Engine, project: str, now_us: int) -> list[Quota]:
    """What is left of each operation."""
    with engine.connect() as connection:
        return [use(connection, project, operation, now_us, 0) for operation in OPERATIONS]
