"""The card of goals: how many people, or AI agents, reached each."""

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from api.dashboard.pages.reading.measured import Measured
from api.dashboard.web.view import View
from warehouse.columns.filters import Filters
from warehouse.control.goals import of_project
from warehouse.errors import TooManyViews
from warehouse.report.audience.goals import Conversion

ROWS_MAX = 500_000
"""Maximum number of page views of a project in a period whose goals the card counts: a million takes 0.4 s."""


class GoalTable(NamedTuple):
    """Conversions of each goal, or of the goal `name` by channel; None if the period has too many views."""

    name: str | None
    rows: list[Conversion] | None


def goals(view: View, _: Measured) -> GoalTable | None:
    """Return how many people reached each goal, or AI agents with a filter; None without a goal.

    With the parameter `goal`, the rows are the channels of this goal: only people have channels.
    """
    kind = view.filters["traffic"] or "human"
    name = view.values.get("goal") if kind == "human" else None
    rows = _rows(view, kind, name) if of_project(view.visit.state.control, view.project.id) else []
    return None if rows == [] and not name else GoalTable(name, rows)


def _rows(view: View, kind: str, name: str | None) -> list[Conversion] | None:
    if has_few_views(view):
        with suppress(TooManyViews):
            every = chain.from_iterable(view.reports.goals(view.snapshot, view.query(), "channel" if name else ""))
            return [each for each in every if each.traffic == kind and (not name or (each.goal == name and each.value))]
    return None


def has_few_views(view: View) -> bool:
    """Return whether the period has at most ROWS_MAX views of the project, with any filters: all of them are read."""
    query = replace(view.query(), filters=Filters())
    counts = view.reports.breakdown(view.snapshot, query, "source", 0, 1).totals
    return counts.total + counts.bot <= ROWS_MAX
