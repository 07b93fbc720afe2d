"""Table of the source policies of projects."""

from datetime import date

import sqlalchemy as sa

from warehouse.control import audit, projects
from warehouse.control.database import METADATA, PROJECTS, transaction
from warehouse.control.policy import DEFAULT, Period, Periods, Policy

SOURCE_POLICIES = sa.Table(
    "source_policies",
    METADATA,
    sa.Column("project_id", sa.ForeignKey(PROJECTS.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("from_date", sa.Date, primary_key=True),
    sa.Column("policy", sa.String(40), nullable=False),
)


def periods(engine: sa.Engine, project: str) -> Periods:
    """Return the policies of a project; `()` for a project without one, or that does not exist."""
    query = SOURCE_POLICIES.select().where(SOURCE_POLICIES.c.project_id == project)
    with engine.connect() as connection:
        rows = connection.execute(query.order_by(SOURCE_POLICIES.c.from_date)).all()
    listed = tuple(Period(row.from_date, row.policy) for row in rows)
    return () if all(each.policy == DEFAULT for each in listed) else listed


def put(engine: sa.Engine, project: str, policy: Policy, from_date: date, by: str | None = None) -> Periods:
    """Set the policy from a UTC day on, and return all periods. The policies from later days are removed.

    The default policy is not stored for all days. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound: no project has the id.
    """
    of_project = SOURCE_POLICIES.c.project_id == project
    values = {"project_id": project, "from_date": from_date, "policy": policy}
    with transaction(engine) as connection:
        projects.lock(connection, project)
        connection.execute(SOURCE_POLICIES.delete().where(of_project, SOURCE_POLICIES.c.from_date >= from_date))
        if (from_date, policy) != (date.min, DEFAULT):
            connection.execute(SOURCE_POLICIES.insert().values(values))
        days = "all days" if from_date == date.min else f"days from {from_date}"
        audit.record(connection, by, "set the source policy", project, f"{policy} for {days}")
    return periods(engine, project)
