"""Table of the source policies of projects."""

from datetime import date

from warehouse.control import audit, projects
from warehouse.control.database import statements
from warehouse.control.policy import DEFAULT, Period, Periods, Policy
from warehouse.database.pool import Pool

STATEMENTS = statements(__file__)


def periods(control: Pool, project: str) -> Periods:
    """Return the policies of a project; `()` for a project without one, or that does not exist."""
    with control.connect() as connection:
        rows = STATEMENTS.run(connection, "PERIODS", {"project": project}).fetchall()
    listed = tuple(Period(date.fromisoformat(from_date), policy) for from_date, policy in rows)
    return () if all(each.policy == DEFAULT for each in listed) else listed


def put(control: Pool, project: str, policy: Policy, from_date: date, by: str | None = None) -> Periods:
    """Set the policy from a UTC day on, and return all periods. The policies from later days are removed.

    The default policy is not stored for all days. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound: no project has the id.
    """
    values = {"project": project, "from_date": from_date.isoformat()}
    with control.transaction() as connection:
        projects.lock(connection, project)
        STATEMENTS.run(connection, "DELETE_FROM", values)
        if (from_date, policy) != (date.min, DEFAULT):
            STATEMENTS.run(connection, "ADD", {**values, "policy": policy})
        days = "all days" if from_date == date.min else f"days from {from_date}"
        audit.record(connection, by, "set the source policy", project, f"{policy} for {days}")
    return periods(control, project)
