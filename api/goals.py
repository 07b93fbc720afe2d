"""New goals, as a request, a form or a command defines them."""

from ingest.errors import InvalidField
from ingest.hits.url import normalize_filter
from warehouse.columns.visits import ENGAGEMENT
from warehouse.control import goals
from warehouse.control.goals import Goal, Kind
from warehouse.database.pool import Pool
from warehouse.errors import InvalidGoal


def add(control: Pool, project: str, name: str, kind: Kind, value: str, by: str | None = None) -> Goal:
    """Add a goal: see `goals.add`. A path is normalised as the paths of hits are. ENGAGEMENT is no goal.

    Raises:
        ProjectNotFound, InvalidGoal
    """
    if kind == "path":
        try:
            value = normalize_filter(value)
        except InvalidField as error:
            raise InvalidGoal("value", error.reason) from None
    elif value == ENGAGEMENT:
        raise InvalidGoal("value", f"must be another name: `{ENGAGEMENT}` is the website script's and never counted")
    return goals.add(control, project, name, kind, value, by)
