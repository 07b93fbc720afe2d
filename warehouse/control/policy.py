"""Source policies: which sources of a project count. A policy is valid from a UTC day on, until the next one.

The rows of `hits` never depend on a policy: reports apply it, also to hits that came before it was set.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

Policy = Literal["all", "beacon_only", "log_only", "beacon_people_log_machines", "confirmed_people"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
DEFAULT: Policy = "all"
"""Policy of a day before the first period."""
SOURCES = ("beacon", "server", "log")
"""Values of `hits.source`. Policies call all but `beacon` logs."""
_PAGES, _LOGS = SOURCES[:1], SOURCES[1:]


class Counted(NamedTuple):
    """Sources whose page views a policy counts: of people, of AI and other bots, and of Markdown by anybody.

    `only_confirmed`: views by people without evidence do not count.
    """

    people: tuple[str, ...]
    machines: tuple[str, ...]
    markdown: tuple[str, ...]
    only_confirmed: bool = False

    @property
    def counts_twice(self) -> bool:
        """Return whether a view by a person counts twice if a page and a log have it."""
        return self.people == SOURCES


COUNTED: Mapping[Policy, Counted] = {
    "all": Counted(SOURCES, SOURCES, SOURCES),
    "beacon_only": Counted(_PAGES, _PAGES, _PAGES),
    "log_only": Counted(_LOGS, _LOGS, _LOGS),
    "beacon_people_log_machines": Counted(_PAGES, _LOGS, _LOGS),
    "confirmed_people": Counted(SOURCES, SOURCES, SOURCES, only_confirmed=True),
}
TEXTS: Mapping[Policy, str] = {
    "all": "Counts every view of every source; people are counted twice if two sources see the same visits.",
    "beacon_only": "Counts the views of the website script, which few AI readers and bots run.",
    "log_only": "Counts the views that your server and access logs have, and none of the website script.",
    "beacon_people_log_machines": "Counts people from the website script, and AI, other bots and all Markdown from "
    "your server and access logs. Programs that pretend to be browsers are in logs only, so they do not count.",
    "confirmed_people": "Counts AI, other bots, and the people who ran the website script, loaded a style, script, "
    "font or image, or followed a link of your site. People without any of this are shown beside the number. People "
    "who were not measured count, and a view that two sources sent counts twice.",
}
"""What each policy counts, in the words of pages, help, reference and docs."""


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
    return next((each.policy for each in reversed(periods) if each.from_date <= day), DEFAULT)


def first_day(policy: Policy, first_hits: Mapping[str, datetime], today: date) -> date:
    """Return the first UTC day of a new policy by default: the day of the first hit of a source that counts people.

    Before it, the policy would leave out views that no other hit has. The day is today if none of these sources has
    sent a hit, and the first of all days if people count from every source.
    """
    counted = COUNTED[policy]
    if counted.counts_twice:
        return date.min
    return min((first_hits[name].date() for name in counted.people if name in first_hits), default=today)


def changed(periods: Periods, policy: Policy, from_date: date) -> Periods:
    """Return periods with a new policy from a day on, which replaces the policies of later days."""
    return (*(each for each in periods if each.from_date < from_date), Period(from_date, policy))


def spans(periods: Periods, start: date, end: date) -> list[Span]:
    """Return the days with start <= day < end, in order, divided where a policy begins."""
    bounds = [start, *(each.from_date for each in periods if start < each.from_date < end), end]
    return [Span(first, after, on(periods, first)) for first, after in pairwise(bounds) if first < after]
