"""Audit log: who signed in or failed to, and who changed users, keys, share links, allowed sites and source policies.

It has no addresses and no secrets. An entry is written in the transaction of its change. Entries about a project are
deleted with it.
"""

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

import sqlalchemy as sa

from warehouse.control.database import METADATA, PROJECTS

RETENTION_DAYS = 365
"""Age at which an entry is deleted, in days."""
ENTRIES_MAX = 10_000
"""Maximum number of entries of what was done; the oldest ones are deleted."""
FAILURES_MAX = 1_000
"""Maximum number of entries of FAILURES, which are apart: strangers must not displace other entries."""
DETAIL_CHARACTERS_MAX = 300
Failure = Literal["failed to sign in", "entered a wrong password"]
FAILURES: tuple[Failure, ...] = get_args(Failure)
Action = Literal[
    Failure,
    "signed in",
    "signed in with a link",
    "set the password",
    "reset the password",
    "added a user",
    "changed a role",
    "removed a user",
    "created an API key",
    "revoked an API key",
    "created a share link",
    "revoked a share link",
    "set the source policy",
    "set the allowed sites",
    "allowed a site",
]

AUDIT = sa.Table(
    "audit",
    METADATA,
    sa.Column("id", sa.String(12), primary_key=True),
    sa.Column("at_us", sa.BigInteger, nullable=False, index=True),
    sa.Column("who", sa.String(100)),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("project_id", sa.ForeignKey(PROJECTS.c.id, ondelete="CASCADE"), index=True),
    sa.Column("detail", sa.String(DETAIL_CHARACTERS_MAX), nullable=False),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """An action. `who` is the name that the user had; None for the command line, which anybody may run who can also
    change the database, and for a failure under a name that no user has. `project` is None for an action that is not
    about a project."""

    at: datetime
    who: str | None
    action: str
    project: str | None
    detail: str


def record(
    connection: sa.Connection, by: str | None, action: Action, project: str | None = None, detail: str = ""
) -> None:
    """Add an entry inside the caller's transaction, and delete the entries that are too old or too many."""
    is_failure = AUDIT.c.action.in_(FAILURES)
    alike, most = (is_failure, FAILURES_MAX) if action in FAILURES else (~is_failure, ENTRIES_MAX)
    now_us = time.time_ns() // 1_000
    values = {"id": secrets.token_hex(6), "at_us": now_us, "who": by, "action": action, "project_id": project}
    connection.execute(AUDIT.insert().values(values | {"detail": detail[:DETAIL_CHARACTERS_MAX]}))
    first_surplus = sa.select(AUDIT.c.at_us).where(alike).order_by(AUDIT.c.at_us.desc()).offset(most).limit(1)
    is_old = AUDIT.c.at_us <= now_us - RETENTION_DAYS * 86_400 * 1_000_000
    connection.execute(AUDIT.delete().where(is_old | alike & (AUDIT.c.at_us <= first_surplus.scalar_subquery())))


def entries(engine: sa.Engine, offset: int, limit: int) -> list[Entry]:
    """Return entries, newest first."""
    query = AUDIT.select().order_by(AUDIT.c.at_us.desc(), AUDIT.c.id.desc()).offset(offset).limit(limit)
    with engine.connect() as connection:
        rows = connection.execute(query).all()
    return [
        Entry(datetime.fromtimestamp(row.at_us / 1e6, UTC), row.who, row.action, row.project_id, row.detail)
        for row in rows
    ]


def count(engine: sa.Engine) -> int:
    """Return the number of entries."""
    with engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(AUDIT)).scalar_one()
