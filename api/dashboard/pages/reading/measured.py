"""The sources of a project, and the time from which each one counts. A count without a source is never shown as 0."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.dashboard.web.period import Period
from api.dashboard.web.view import SOURCES, View
from warehouse.report.source_coverage import Source

_NAMES = re.compile(rf"^({'|'.join(SOURCES)})(?: and ({'|'.join(SOURCES)}))?")
SERVER_SOURCES = ("server", "log")
"""Sources that see AI readers and other bots. The website script does not: few of them run it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The sources of a project that the page's filters select, those of them that have sent views, and warnings.

    `has_views` is whether the project has a view of any source.
    """

    selected: tuple[str, ...]
    sources: tuple[Source, ...]
    warnings: tuple[str, ...]
    has_views: bool

    @property
    def since(self) -> datetime | None:
        """Return the time of the first view; None before it."""
        return min((source.first_hit for source in self.sources), default=None)

    @property
    def sees_ai(self) -> bool:
        """Return whether a source sees AI readers and other bots."""
        return self.ai_since is not None

    @property
    def ai_since(self) -> datetime | None:
        """Return the time of the first view of a source that sees AI readers and other bots; None without one."""
        return min((source.first_hit for source in self.sources if source.source in SERVER_SOURCES), default=None)

    @property
    def missing(self) -> list[str]:
        """Return the names of the selected sources that have never sent a view."""
        present = {source.source for source in self.sources}
        return [SOURCES[name] for name in self.selected if name not in present]

    def counts_in(self, period: Period) -> bool:
        """Return whether a source counted in a part of a period."""
        return has_begun(self.since, period)

    def counts_ai_in(self, period: Period) -> bool:
        """Return whether AI readers and other bots were counted in a part of a period."""
        return has_begun(self.ai_since, period)

    def began_in(self, start: datetime, end: datetime) -> Iterator[Source]:
        """Yield the sources whose first view is in a range, the earliest first."""
        within = (source for source in self.sources if start <= source.first_hit < end)
        yield from sorted(within, key=lambda source: source.first_hit)


def has_begun(since: datetime | None, period: Period) -> bool:
    """Return whether a source with the first view at `since` counted in a part of the period."""
    return since is not None and (period.end is None or since < period.end)


def read(view: View) -> Measured:
    """Return what the project of a view measures, in the sources that the filters of the view select."""
    coverage = view.reports.source_coverage(view.snapshot, view.project.id)
    selected = (view.filters.source,) if view.filters.source else tuple(SOURCES)
    return Measured(
        selected,
        tuple(source for source in coverage.sources if source.source in selected),
        tuple(readable(coverage.warnings)),
        has_views=bool(coverage.sources),
    )


def readable(warnings: Sequence[str]) -> Iterator[str]:
    """Yield the warnings of the coverage with the names of the sources as the pages show them."""
    for warning in warnings:
        named = _NAMES.sub(
            lambda match: " and ".join(f"“{SOURCES[name]}”" for name in match.groups() if name), warning, count=1
        )
        yield named.replace(" hit ", " view ") + "."
