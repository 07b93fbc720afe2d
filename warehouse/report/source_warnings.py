"""Warnings about the sources of a project, as records that each surface renders, and how they are found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from typing import Literal

from warehouse.columns import sources
from warehouse.columns.sources import SOURCES
from warehouse.control import policy
from warehouse.control.policy import Periods
from warehouse.plural import counted

MISSING_DAYS_MAX = 1_000
"""Maximum number of missing days that are listed for a source."""
Kind = Literal["counted_twice", "silent", "unlisted", "capped", "one_address"]
_TEXTS: Mapping[Kind, str] = {
    "counted_twice": "{sources} both have views of people on {days}, the last of them {day}: a view that both sources "
    "sent is counted twice",
    "silent": "{sources} has had no {hit} for {days}, since {day}",
    "unlisted": "{sources} had no {hit} on {days} between its first and its last {hit}; only the last {listed} of "
    "these days are listed",
    "capped": "{senders} reached the limit of new {values} (READERSHIP_NEW_VALUES_PER_DAY) on {days}, the last of them "
    "{day}: {views} counted under {other}",
    "one_address": "most of the views that {sources} had on {days}, the last of them {day}, came from one address with "
    "several user agents: if it is a proxy, list it in READERSHIP_TRUSTED_PROXIES, or log the address of the reader",
}


@dataclass(frozen=True, slots=True)
class SourceWarning:
    """Something about sources that the owner of a project should check. `str` returns the sentence of the API.

    `days` is a number of UTC days, and `day` the last of them, or the day of the last hit of a silent source. `views`
    have one of the new `values` above the limit, and are counted under `other`.
    """

    kind: Kind
    sources: tuple[str, ...]
    days: int
    day: date | None = None
    views: int = 0
    values: str = ""
    other: str = ""

    def __str__(self) -> str:
        return self.text()

    def text(
        self, names: Mapping[str, str] | None = None, day: Callable[[date], str] = date.isoformat, hit: str = "hit"
    ) -> str:
        """Return the sentence without its full stop. `names` are the names of the sources on pages."""
        joined = " and ".join((names or {}).get(each, each) for each in self.sources)
        return _TEXTS[self.kind].format(
            sources=joined,
            senders=joined if names else f"{joined}s",
            days=counted(self.days, "day"),
            day=self.day and day(self.day),
            hit=hit,
            views=f"{counted(self.views, 'view')} {'is' if self.views == 1 else 'are'}",
            listed=f"{MISSING_DAYS_MAX:,}",
            values=self.values,
            other=self.other,
        )


def counted_twice(people: Mapping[str, Mapping[date, int]], periods: Periods) -> Iterator[SourceWarning]:
    """Yield a warning for each pair of sources that have views by people on the same days and both count on them.

    `people` are the views by people of each source and day.
    """
    days = {
        source: {
            day
            for day, views in people.get(source, {}).items()
            if views and sources.counts(policy.on(periods, day), source, "human")
        }
        for source in SOURCES
    }
    for one, another in combinations(SOURCES, 2):
        if both := days[one] & days[another]:
            yield SourceWarning("counted_twice", (one, another), len(both), max(both))
