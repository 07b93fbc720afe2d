"""Audit log: who signed in or failed to, and who changed users, keys, share links, allowed sites, source policies and
goals.

It has no addresses and no secrets. An entry is written in the transaction of its change. Entries about a project are
deleted with it.
"""

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

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
    "added a goal",
    "removed a goal",
]

STATEMENTS = statements(__file__)


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
    connection: Connection, by: str | None, action: Action, project: str | None = None, detail: str = ""
) -> None:
    """Add an entry inside the caller's transaction, and delete the entries that are too old or too many."""
    is_failure, now_us = action in FAILURES, time.time_ns() // 1_000
    values = {"id": secrets.token_hex(6), "at_us": now_us, "who": by, "action": action, "project": project}
    STATEMENTS.run(connection, "ADD", {**values, "detail": detail[:DETAIL_CHARACTERS_MAX]})
    surplus = {
        "old_us": now_us - RETENTION_DAYS * 86_400 * 1_000_000,
        "is_failure": is_failure,
        "most": FAILURES_MAX if is_failure else ENTRIES_MAX,
    }
    failures = {f"failure{number}": failure for number, failure in enumerate(FAILURES)}
    STATEMENTS.run(connection, "DELETE_SURPLUS", {**surplus, **failures})


def entries(control: Pool, offset: int, limit: int) -> list[Entry]:
    """Return entries, newest first."""
    with control.connect() as connection:
        rows = STATEMENTS.run(connection, "ENTRIES", {"offset": offset, "limit": limit}).fetchall()
    return [Entry(datetime.fromtimestamp(at_us / 1e6, UTC), *rest) for at_us, *rest in rows]


def count(control: Pool) -> int:
    with control.connect() as connection:
        return int(STATEMENTS.run(connection, "COUNT").fetchone()[0])
