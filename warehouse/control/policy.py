"""Source policies: which sources of a project count. A policy is valid from a UTC day on, until the next one.

The rows of `hits` never depend on a policy: reports apply it, also to hits that came before it was set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import pairwise
from typing import Literal, get_args

Policy = Literal["all", "beacon_only", "log_only", "beacon_people_log_machines"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
DEFAULT: Policy = "all"
"""Policy of a day before the first period."""
MARKDOWN = ("text/markdown", "markdown", "md")
"""Values of `hits.format` for Markdown, which browsers do not show: a page's beacon is never sent."""
_IS_MARKDOWN = f"coalesce(format IN {MARKDOWN}, false)"
CONDITIONS: dict[Policy, str] = {
    "all": "true",
    "beacon_only": "source = 'beacon'",
    "log_only": "source <> 'beacon'",
    "beacon_people_log_machines": f"(source = 'beacon') = (traffic = 'human' AND NOT {_IS_MARKDOWN})",
}
"""SQL condition of the hits that a policy counts. Access logs (`log`) and server posts (`server`) are its logs."""

PREFERRED: dict[Policy, tuple[str, ...]] = {
    "all": (),
    "beacon_only": ("beacon",),
    "log_only": ("server", "log"),
    "beacon_people_log_machines": ("beacon",),
}
"""Sources that a policy prefers to others. Before their first hit it would leave out views that no other hit has."""
BY_FORMAT: Policy = "beacon_people_log_machines"
"""Policy that depends on the format of a hit. All others depend on the source only."""


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A policy, and the UTC day from which it is valid."""

    from_date: date
    policy: Policy


Periods = tuple[Period, ...]
"""Periods of a project in the order of their days. `()` counts every source."""


@dataclass(frozen=True, slots=True)
class Span:
    """UTC days with start <= day < end, and their policy."""

    start: date
    end: date
    policy: Policy


def on(periods: Periods, day: date) -> Policy:
    """Return the policy of a UTC day."""
    return next((each.policy for each in reversed(periods) if each.from_date <= day), DEFAULT)


def first_day(policy: Policy, first_hits: Mapping[str, datetime], today: date) -> date:
    """Return the first UTC day of a new policy by default: the day of the first hit of a source that it prefers.

    It is today if none of these sources has sent a hit, and the first of all days if the policy prefers no source.
    """
    if not PREFERRED[policy]:
        return date.min
    return min((first_hits[name].date() for name in PREFERRED[policy] if name in first_hits), default=today)


def changed(periods: Periods, policy: Policy, from_date: date) -> Periods:
    """Return periods with a new policy from a day on, which replaces the policies of later days."""
    return (*(each for each in periods if each.from_date < from_date), Period(from_date, policy))


def spans(periods: Periods, start: date, end: date) -> list[Span]:
    """Return the days with start <= day < end, in order, divided where a policy begins."""
    bounds = [start, *(each.from_date for each in periods if start < each.from_date < end), end]
    return [Span(first, after, on(periods, first)) for first, after in pairwise(bounds) if first < after]


def counts(policy: Policy, source: str, traffic: str) -> bool:
    """Return whether a policy counts the hits of a source and a kind of traffic.

    With the policy BY_FORMAT, the reverse is true for Markdown that people read.
    """
    is_beacon = source == "beacon"
    match policy:
        case "all":
            return True
        case "beacon_only":
            return is_beacon
        case "log_only":
            return not is_beacon
        case "beacon_people_log_machines":
            return is_beacon == (traffic == "human")


def condition(periods: Sequence[Period]) -> tuple[str, dict[str, object]]:
    """Return the SQL condition of the rows of `hits` that count, and the values that it binds."""
    starts = {f"policy_from_{number}": each for number, each in enumerate(periods)}
    cases = (f"WHEN ts >= ${name} THEN {CONDITIONS[each.policy]}" for name, each in reversed(starts.items()))
    values = {name: datetime.combine(each.from_date, time(tzinfo=UTC)) for name, each in starts.items()}
    return f"CASE {' '.join(cases)} ELSE {CONDITIONS[DEFAULT]} END", {**values}
