"""What the sources of a project counted in a period. A count without a source is never shown as 0."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from typing import NamedTuple

from babel import Locale

from api.dashboard.web import locale
from api.dashboard.web.period import Period
from api.dashboard.web.view import SOURCES, View
from warehouse.columns import sources
from warehouse.columns.sources import TRAFFIC
from warehouse.control import policy, source_policies
from warehouse.control.policy import Periods, Policy
from warehouse.report import measured
from warehouse.report.measured import SEEING, Limit, clipped, holes
from warehouse.report.results import Counts
from warehouse.report.source_coverage import SourceCoverage
from warehouse.report.source_warnings import SourceWarning

FILTERED, NOT_SET_UP, NOT_COUNTED = "not part of this filter", "not set up", "not counted in this period"
LEFT_OUT = "left out by the source policy"
"""Reasons why a kind of readers has no number."""
APART = "on some days only people or only AI were counted"
"""Reason why people and AI have no quotient."""
SERVER_SOURCES = SEEING["ai"]
"""Sources that see AI readers and other bots."""
_NOON = time(12, tzinfo=UTC)
_DAY = timedelta(days=1)
READERS = {"human": "people", "ai": "AI", "bot": "other bots"}
_SUBJECTS = {**READERS, "ai": "AI readers"}
_QUOTED = {source: f"“{name}”" for source, name in SOURCES.items()}


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
    sources that have sent views, with `warnings` about the coverage. `known` has the times in which the selected
    sources counted. `policies` are the source policies of the period, and `policies_before` the policies of the
    previous period. The days in sentences are in the time zone of the period and the format of `viewer`.
    """

    period: Period
    previous: Period | None
    viewer: Locale
    traffic: tuple[str, ...]
    selected: tuple[str, ...]
    sources: tuple[SourceCoverage, ...]
    warnings: tuple[str, ...]
    known: measured.Measured
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
    def ai_since(self) -> date | None:
        """Return the UTC day on which AI readers were first counted: a page of this day may have been read before."""
        return min((each.first_hit.date() for each in self.sources if each.source in SERVER_SOURCES), default=None)

    @property
    def missing(self) -> list[str]:
        """Return the names of the selected sources that have never sent a view."""
        present = {source.source for source in self.sources}
        return [SOURCES[name] for name in self.selected if name not in present]

    def counts(self, source: str, kind: str) -> bool:
        """Return whether a source sees a kind of readers, and a policy of the period counts them."""
        return source in SEEING[kind] and any(sources.counts(each, source, kind) for each in self.policies)

    def is_shown(self, source: str, kind: str) -> bool:
        """Return whether the number of a kind of readers from a source is shown, also if it is 0."""
        return kind in self.traffic and self.counts(source, kind)

    def extent(self, kind: str, period: Period | None = None) -> measured.Extent:
        """Return how much of the period, or of another one, was counted."""
        chosen = period or self.period
        return self.known.extent(kind, chosen.start, chosen.end)

    def reason(self, kind: str) -> str | None:
        """Return the reason why a kind of readers has no number in the period; None if it has one."""
        return self.unmeasured(kind) if kind in self.traffic else FILTERED

    def unmeasured(self, kind: str) -> str | None:
        """Return why a kind of readers was not measured in the period; None if it was."""
        if self.extent(kind) != "none":
            return None
        seeing = [source.source for source in self.sources if source.source in SEEING[kind]]
        if not seeing:
            return NOT_SET_UP
        return NOT_COUNTED if any(self.counts(source, kind) for source in seeing) else LEFT_OUT

    @property
    def no_quotient(self) -> str | None:
        """Return why views by people and reads by AI have no quotient in the period; None if they have one.

        Times of less than a day in all are ignored, such as between the set-ups of two sources.
        """
        if reason := self.unmeasured("human") or self.unmeasured("ai"):
            return reason
        within, spans = self.known.within(self.period.start, self.period.end), self.known.spans
        alone = [
            hole
            for one, other in (("human", "ai"), ("ai", "human"))
            for part in clipped(spans[one], within)
            for hole in holes(spans[other], part)
        ]
        apart = sum((each.end - each.start for each in alone if each.end), timedelta())
        return APART if apart >= _DAY else None

    def counts_now(self, kind: str) -> bool:
        return self.known.counts(kind, self.known.now, None)

    def compares(self, *kinds: str) -> bool:
        """Return whether all of `kinds` that were ever counted can be compared with the previous period."""
        counted = [kind for kind in kinds if kind in self.traffic and self.known.spans[kind]]
        return bool(counted) and not any(map(self._obstacle, counted))

    def notes(self, *kinds: str, subject: str | None = None) -> Iterator[str]:
        """Yield a sentence for readers who were counted in a part of the period only, or not at all.

        `subject` is what was counted, by default the readers.
        """
        of_kinds = {kind: self._limit(kind, self.period) for kind in kinds if kind in self.traffic}
        limits = {kind: limit for kind, limit in of_kinds.items() if limit and not self._is_brief(limit, kind)}
        for text, limited in _grouped({kind: self._text(limit) for kind, limit in limits.items()}):
            limit = limits[limited[0]]
            what = subject or _capitalized(joined([_SUBJECTS[kind] for kind in limited]))
            if all(self.extent(kind) == "none" for kind in limited):
                yield f"{what} were not counted in this period. {_capitalized(text)}."
            elif limit.reason != "began":
                yield f"{what} were not counted in all of this period: {text}."
            elif any(self.known.counts(kind, self.period.start, limit.at) for kind in self.traffic):
                yield f"{what} have been counted since {self._first_day(limit)}."

    def no_changes(self) -> Iterator[str]:
        """Yield a sentence for readers who were counted in the period, and cannot be compared with the previous one."""
        obstacles = {kind: self._obstacle(kind) for kind in self.traffic if self.extent(kind) != "none"}
        for obstacle, kinds in _grouped(obstacles):
            yield f"No change is shown for {joined([READERS[kind] for kind in kinds])}: {obstacle}."

    def _obstacle(self, kind: str) -> str | None:
        """Return the reason why a kind of readers cannot be compared with the previous period; None if it can."""
        if self.previous is None:
            return "there is no earlier period"
        if not self.is_counted_alike(kind):
            return "the source policy counts other sources in one of the two periods"
        before, now = self._limit(kind, self.previous), self._limit(kind, self.period)
        if before:
            return self._text(before) + (", after the start of the previous period" if before.reason == "began" else "")
        return self._text(now) if now else None

    def _limit(self, kind: str, period: Period) -> Limit | None:
        return self.known.limit(kind, period.start, period.end)

    def _is_brief(self, limit: Limit, kind: str) -> bool:
        """Return whether a policy left a kind out for hours only, as before the first hit of the source it prefers."""
        is_part = limit.reason == "policy" and self.extent(kind) == "part"
        return is_part and any(limit.at <= each.start < limit.at + _DAY for each in self.known.spans[kind])

    def _text(self, limit: Limit) -> str:
        if limit.reason == "began":
            return f"counting began on {self._first_day(limit)}"
        last = locale.day((limit.at - timedelta.resolution).date(), self.viewer)
        if limit.reason == "policy":
            return f"the source policy left them out after {last}"
        return f"{joined([f'“{SOURCES[source]}”' for source in limit.sources])} sent no view after {last}"

    def _first_day(self, limit: Limit) -> str:
        return locale.day(limit.at.astimezone(self.period.zone).date(), self.viewer)

    def is_counted_alike(self, kind: str) -> bool:
        """Return whether all policies of the period and of the previous one count a kind from the same sources."""
        present = {source.source for source in self.sources}.intersection(SEEING[kind])
        policies = self.policies | self.policies_before
        return len({frozenset(name for name in present if sources.counts(each, name, kind)) for each in policies}) == 1

    def gaps(self) -> list[Gap]:
        """Return the gaps of the sources that count the selected readers, between the first and last view of each.

        A UTC day belongs to the period if its noon does.
        """
        result, period = [], self.period
        for source in self.sources:
            noons = [datetime.combine(day, _NOON) for day in source.missing_days]
            days = [noon.date() for noon in noons if period.start <= noon < (period.end or noon + _DAY)]
            if days and any(self.counts(source.source, kind) for kind in self.traffic):
                result.append(Gap(SOURCES[source.source], len(days), tuple(_runs(days))))
        return result

    def shown(self, counts: Counts, start: datetime, end: datetime | None) -> Shown:
        """Return the counts of a range, which without an end ends now, with None in place of a 0 that was not counted.

        A number above 0 is never left out: an AI agent can run the website script.
        """
        return shown(counts, [kind for kind in self.traffic if self.known.counts(kind, start, end)])


def _runs(days: Sequence[date]) -> Iterator[tuple[date, date]]:
    """Yield the first and last day of each run of consecutive days."""
    for _, run in groupby(enumerate(days), lambda numbered: numbered[1].toordinal() - numbered[0]):
        numbered = [day for _, day in run]
        yield numbered[0], numbered[-1]


def shown(counts: Counts, counted: Collection[str]) -> Shown:
    """Return the counts; a 0 of a kind that is not in `counted` becomes None."""
    return Shown(*(getattr(counts, kind) or (0 if kind in counted else None) for kind in TRAFFIC))


def _grouped(reasons: Mapping[str, str | None]) -> list[tuple[str, list[str]]]:
    """Return the kinds of readers by their reason, without those that have none."""
    groups: dict[str, list[str]] = {}
    for kind, reason in reasons.items():
        if reason:
            groups.setdefault(reason, []).append(kind)
    return list(groups.items())


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


def joined(names: Sequence[str]) -> str:
    """Return names as a list: OpenAI, Anthropic and Perplexity."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def measured_in(view: View, *, has_policy: bool = True) -> Measured:
    """Return the sources of the project of a view that the filters of the view select, and which readers they count.

    Without a policy every source counts.
    """
    coverage = view.coverage
    periods = source_policies.periods(view.visit.state.control, view.project.id) if has_policy else ()
    selected = view.filters.selected_sources
    sources = tuple(source for source in coverage.sources if source.source in selected)
    since = min((source.first_hit for source in coverage.sources), default=None)
    of_sources = {source.source: source.spans for source in sources}
    spans = measured.of_kinds(of_sources, periods)
    previous = view.period.previous(view.visit.now)
    return Measured(
        view.period,
        previous,
        view.visit.locale,
        view.filters.selected_traffic,
        selected,
        sources,
        readable(coverage.warnings, view.visit.locale),
        known=measured.Measured(spans, since, view.now, of_sources),
        policies=_policies(view, view.period, periods),
        policies_before=_policies(view, previous, periods) if previous else frozenset(),
    )


def readable(warnings: Iterable[SourceWarning], viewer: Locale) -> tuple[str, ...]:
    """Return warnings as sentences, with the names of sources and the days as the viewer's pages show them."""
    return tuple(f"{each.text(_QUOTED, lambda day: locale.day(day, viewer), 'view')}." for each in warnings)


def _policies(view: View, period: Period, periods: Periods) -> frozenset[Policy]:
    """Return the source policies of the UTC days of a period."""
    first, last = period.start.date(), (period.end - timedelta.resolution if period.end else view.now).date()
    later = (each.policy for each in periods if first < each.from_date <= last)
    return frozenset([policy.on(periods, first), *later])
