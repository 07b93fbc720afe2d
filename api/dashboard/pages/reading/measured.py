"""The sources of a project, and the time from which each one counts. A count without a source is never shown as 0."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import NamedTuple

from babel import Locale

from api.dashboard.web import locale
from api.dashboard.web.period import Period
from api.dashboard.web.view import SOURCES, View
from warehouse.control import policy, source_policies
from warehouse.control.policy import Policy
from warehouse.report.filters import Counts, Filters
from warehouse.report.source_coverage import Source
from warehouse.rollups.schema import TRAFFIC

FILTERED, NOT_SET_UP, NOT_COUNTED = "not part of this filter", "not set up", "not counted in this period"
LEFT_OUT = "left out by the source policy"
"""Reasons why a kind of readers has no number."""
_NAMES = re.compile(rf"^({'|'.join(SOURCES)})(?: and ({'|'.join(SOURCES)}))?")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
SERVER_SOURCES = ("server", "log")
"""Sources that see AI readers and other bots. The website script does not: few of them run it."""
_NOON = time(12, tzinfo=UTC)
_SEEING = {"human": tuple(SOURCES), "ai": SERVER_SOURCES, "bot": SERVER_SOURCES}
"""Sources that see a kind of readers."""
_COUNTED: Mapping[Policy, Mapping[str, Collection[str]]] = {
    "all": _SEEING,
    "beacon_only": dict.fromkeys(TRAFFIC, ("beacon",)),
    "log_only": dict.fromkeys(TRAFFIC, SERVER_SOURCES),
    "beacon_people_log_machines": {**_SEEING, "human": ("beacon",)},
}
"""Sources of which a policy counts a kind of readers."""


class Shown(NamedTuple):
    """Views by each kind of readers. None: the kind was not counted, or is not part of the filters."""

    human: int | None
    ai: int | None
    bot: int | None


class Gap(NamedTuple):
    """Name of a source, the number of UTC days of a period on which it sent no view, and their first and last days."""

    source: str
    days: int
    runs: tuple[tuple[date, date], ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """The sources of a project, and which readers they count.

    The page's filters can select the readers `traffic` and the sources `selected`. `sources` are the selected
    sources that have sent views, with `warnings` about the coverage. `has_views` is whether the project has a
    view of any source. `policies` are the source policies of the days of the period, and `policies_before` those of the
    previous period.
    """

    traffic: tuple[str, ...]
    selected: tuple[str, ...]
    sources: tuple[Source, ...]
    warnings: tuple[str, ...]
    has_views: bool
    policies: frozenset[Policy]
    policies_before: frozenset[Policy] = frozenset()

    @property
    def since(self) -> datetime | None:
        """Return the time of the first view; None without a view."""
        return min((source.first_hit for source in self.sources), default=None)

    @property
    def sees_ai(self) -> bool:
        """Return whether a source sees AI readers and other bots."""
        return any(source.source in SERVER_SOURCES for source in self.sources)

    @property
    def ai_since(self) -> datetime | None:
        """Return the time of the first view of a source that counts AI readers and other bots; None without one."""
        return self.since_of("ai")

    @property
    def missing(self) -> list[str]:
        """Return the names of the selected sources that have never sent a view."""
        present = {source.source for source in self.sources}
        return [SOURCES[name] for name in self.selected if name not in present]

    def since_of(self, kind: str) -> datetime | None:
        """Return the time of the first view of a source that sees and counts a kind of readers; None without one."""
        return min((source.first_hit for source in self.sources if self.counts(source.source, kind)), default=None)

    def counts(self, source: str, kind: str) -> bool:
        """Return whether a source sees a kind of readers, and a policy of the period counts them."""
        return source in _SEEING[kind] and any(source in _COUNTED[policy][kind] for policy in self.policies)

    def reason(self, kind: str, period: Period) -> str | None:
        """Return the reason why a kind of readers has no number in a period; None if it was counted in a part of it."""
        if kind not in self.traffic:
            return FILTERED
        if self.since_of(kind) is None:
            return LEFT_OUT if any(source.source in _SEEING[kind] for source in self.sources) else NOT_SET_UP
        return None if has_begun(self.since_of(kind), period.end) else NOT_COUNTED

    def counts_in(self, period: Period) -> bool:
        """Return whether a source counted in a part of a period."""
        return has_begun(self.since, period.end)

    def counted_since(self, start: datetime, kinds: Collection[str]) -> bool:
        """Return whether each of `kinds` that is counted now has been counted since `start`, and from the same sources.

        `start` is in the previous period. If a later source policy counts a kind from other sources, the numbers of the
        two periods cannot be compared.
        """
        begins = {kind: self.since_of(kind) for kind in kinds if kind in self.traffic}
        known = {kind: begin for kind, begin in begins.items() if begin is not None}
        return bool(known) and max(known.values()) <= start and all(map(self.is_counted_alike, known))

    def is_counted_alike(self, kind: str) -> bool:
        """Return whether all policies of the period and of the previous one count a kind from the same sources."""
        present = {source.source for source in self.sources}.intersection(_SEEING[kind])
        policies = self.policies | self.policies_before
        return len({frozenset(present.intersection(_COUNTED[policy][kind])) for policy in policies}) == 1

    def ai_began_within(self, period: Period) -> datetime | None:
        """Return the time from which AI readers were counted, if that is after people were counted in the period."""
        since = self.both_since(period)
        return since if since == self.ai_since else None

    def both_since(self, period: Period) -> datetime | None:
        """Return the time in the period from which people and AI were both counted, if one was counted before it."""
        people, ai = self.since_of("human"), self.ai_since
        if people is None or ai is None or people == ai:
            return None
        later = max(people, ai)
        return later if later > period.start and has_begun(later, period.end) else None

    def gaps(self, period: Period) -> list[Gap]:
        """Return the gaps of the sources that count the selected readers, between the first and last view of each.

        A UTC day belongs to the period if its noon does.
        """
        result = []
        for source in self.sources:
            noons = [datetime.combine(day, _NOON) for day in source.missing_days]
            days = [noon.date() for noon in noons if noon >= period.start and has_begun(noon, period.end)]
            if days and any(self.counts(source.source, kind) for kind in self.traffic):
                result.append(Gap(SOURCES[source.source], len(days), tuple(_runs(days))))
        return result

    def shown(self, counts: Counts, end: datetime | None) -> Shown:
        """Return the counts of a range that ends at `end`, or now, with None in place of a 0 of a kind that was not
        counted.

        A number above 0 is never left out: an AI agent can run the website script.
        """
        return shown(counts, [kind for kind in self.traffic if has_begun(self.since_of(kind), end)])

    def began_in(self, start: datetime, end: datetime) -> Iterator[Source]:
        """Yield the sources whose first view is in a range, the earliest first."""
        within = (source for source in self.sources if start <= source.first_hit < end)
        yield from sorted(within, key=lambda source: source.first_hit)


def _runs(days: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Yield the first and last day of each run of consecutive days."""
    for _, run in groupby(enumerate(days), lambda numbered: numbered[1].toordinal() - numbered[0]):
        numbered = [day for _, day in run]
        yield numbered[0], numbered[-1]


def shown(counts: Counts, counted: Collection[str]) -> Shown:
    """Return the counts; a 0 of a kind that is not in `counted` becomes None."""
    return Shown(*(getattr(counts, kind) or (0 if kind in counted else None) for kind in TRAFFIC))


def has_begun(since: datetime | None, end: datetime | None) -> bool:
    """Return whether a source with the first view at `since` counted before `end`, or before now."""
    return since is not None and (end is None or since < end)


def selectable(filters: Filters) -> tuple[str, ...]:
    """Return the kinds of readers that filters can select.

    Only AI agents have an operator and a purpose. No person has the name of an agent. A bot can have the name of an AI
    agent, if its hit is spoofed. Only the claims of agents and bots are verified.
    """
    if filters.operator is not None or filters.purpose is not None:
        possible: tuple[str, ...] = ("ai",)
    elif filters.verification == "spoofed":
        possible = ("bot",)
    else:
        possible = TRAFFIC if filters.agent is None and filters.verification is None else ("ai", "bot")
    return tuple(kind for kind in filters.selected_traffic if kind in possible)


def read(view: View) -> Measured:
    """Return the sources of the project of a view that the filters of the view select, and which readers they count."""
    coverage = view.reports.source_coverage(view.snapshot, view.project.id)
    selected = (view.filters.source,) if view.filters.source else tuple(SOURCES)
    previous = view.period.previous(view.visit.now)
    return Measured(
        selectable(view.filters),
        selected,
        tuple(source for source in coverage.sources if source.source in selected),
        tuple(readable(coverage.warnings, view.visit.locale)),
        has_views=bool(coverage.sources),
        policies=_policies(view, view.period),
        policies_before=_policies(view, previous) if previous else frozenset(),
    )


def _policies(view: View, period: Period) -> frozenset[Policy]:
    """Return the source policies of the UTC days of a period."""
    periods = source_policies.periods(view.visit.state.control, view.project.id)
    first, last = period.start.date(), (period.end - timedelta.resolution if period.end else view.now).date()
    later = (each.policy for each in periods if first < each.from_date <= last)
    return frozenset([policy.on(periods, first), *later])


def readable(warnings: Iterable[str], viewer: Locale) -> Iterator[str]:
    """Yield the warnings of the coverage with the names of sources and the days as the viewer's pages show them."""
    for warning in warnings:
        named = _NAMES.sub(
            lambda match: " and ".join(f"“{SOURCES[name]}”" for name in match.groups() if name), warning, count=1
        )
        dated = _DAY.sub(lambda match: locale.day(date.fromisoformat(match[0]), viewer), named)
        yield dated.replace(" hit ", " view ") + "."
