"""Tables of agent jobs in the control database. Times are microseconds since 1970."""

import sqlalchemy as sa

from warehouse.control.database import METADATA, PROJECTS

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""Type of a generated id. SQLite generates ids only for a column of the type INTEGER."""


def _project_id() -> sa.Column[str]:
    return sa.Column("project_id", sa.ForeignKey(PROJECTS.c.id, ondelete="CASCADE"), nullable=False)


def _job_id() -> sa.Column[str]:
    return sa.Column("job_id", sa.ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True)


JOBS = sa.Table(
    "jobs",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    _project_id(),
    sa.Column("status", sa.String(9), nullable=False, index=True),
    sa.Column("repository", sa.Text, nullable=False),
    sa.Column("ref", sa.Text, nullable=False),
    sa.Column("preset", sa.Text, nullable=False),
    sa.Column("command", sa.JSON, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("pull_request", sa.Text),
    sa.Column("session", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("changed_us", sa.BigInteger, nullable=False),
    sa.Column("archived_us", sa.BigInteger),
    sa.Index("jobs_of_project", "project_id", "created_us"),
)
TURNS = sa.Table(
    "turns",
    METADATA,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    _project_id(),
    _job_id(),
    sa.Column("operation", sa.String(7), nullable=False),
    sa.Column("prompt", sa.Text, nullable=False),
    sa.Column("state", sa.String(9), nullable=False, index=True),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("started_us", sa.BigInteger),
    sa.Column("ended_us", sa.BigInteger),
    sa.Column("owner", sa.String(64)),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("lease_until_us", sa.BigInteger),
    sa.Column("steps", sa.JSON, nullable=False),
    sa.Index("turns_of_project", "project_id", "operation", "created_us"),
    sqlite_autoincrement=True,
)
"""Turns, one row per prompt; workers claim them in the order of their ids.

`operation` is the request that created the turn, create or message; `state` is queued, running, done, failed or
cancelled; `steps` has the form of `agent.jobs.steps.Steps`.
"""
LOG = sa.Table(
    "job_log",
    METADATA,
    sa.Column("id", _ID, primary_key=True, autoincrement=True),
    _job_id(),
    sa.Column("turn_id", _ID, nullable=False),
    sa.Column("at_us", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)
RESPONSES = sa.Table(
    "job_answers",
    METADATA,
    sa.Column("project_id", sa.ForeignKey(PROJECTS.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("operation", sa.String(48), primary_key=True),
    sa.Column("key", sa.String(255), primary_key=True),
    sa.Column("fingerprint", sa.String(32), nullable=False),
    sa.Column("answer", sa.JSON, nullable=False),
    sa.Column("seen_us", sa.BigInteger, nullable=False, index=True),
)
"""Responses to requests with an Idempotency-Key, for repeated requests. `fingerprint` is a hash of the prompt."""
DELIVERIES = sa.Table(
    "webhook_deliveries",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    _project_id(),
    _job_id(),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("due_us", sa.BigInteger, nullable=False, index=True),
)
"""Webhook messages that are not delivered yet."""
