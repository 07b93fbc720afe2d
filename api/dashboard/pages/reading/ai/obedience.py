"""Violations of the site's robots.txt by AI agents.

Each text is in force until the next one. A disallowed read is a violation if the agent requested the text in force
before the read. Only access logs have these requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from api.dashboard.robots import rules, texts
from api.dashboard.robots.rules import State, names
from api.dashboard.robots.texts import RobotsText
from api.dashboard.web.view import View

CHECKED_MAX = 10_000
"""Maximum number of paths that are compared with a text, those with most reads first."""
VERSIONS_MAX = 5
"""Maximum number of texts of a period that are compared with reads, the newest ones."""
BEGIN, SILENCE = timedelta(days=1), timedelta(days=7)
"""Time after a text's first moment at which a log may begin, and time without a request after which a log has ended."""
STILL_READING, READING = "Disallowed, still reading", "Disallowed, reading"
"""Verdicts on an agent that reads after its request for the text, and on an agent without a log of its requests."""


@dataclass(frozen=True, slots=True)
class Version:
    """A text that was in force in a part of the period, with the disallowed reads of one agent.

    `group` is the group of the text that applies to the agent; None if no group does. `read` is the time of the agent's
    first request for the text, which may precede the period; None if there was none. `is_logged` is whether a log
    covers this time. `before` and `after` are the reads of each disallowed path, before and after `read`.
    """

    since: datetime
    state: State
    group: str | None
    is_logged: bool
    read: datetime | None
    before: Mapping[str, int]
    after: Mapping[str, int]
    is_limited: bool
    """Whether there may be more disallowed reads, because not all paths are compared."""

    @property
    def violations(self) -> int | None:
        """Return the number of violations; None if no log shows whether the agent had requested the text."""
        return sum(self.after.values()) if self.is_logged else None


class Verdict(NamedTuple):
    """Verdict on an agent that robots.txt disallows on the whole site. Pages append the day of `since` to the text."""

    text: str
    since: datetime | None = None

    @property
    def is_violation(self) -> bool:
        return self.text == STILL_READING


class Robots:
    """The texts of a project. `current` are the rules that are in force."""

    def __init__(self, view: View) -> None:
        found = texts.versions(view.visit.state.control, view.project.id)
        self.texts, self._view = [text for text in found if text.since in view.robots_changes], view
        self.current = rules.parse(self.texts[-1].content)
        times = [text.since for text in self.texts]
        self._reads_of = view.reports.robots_reads(view.project.id, view.snapshot.moment, times)

    @property
    def since(self) -> datetime:
        """Return the time from which the current text is in force."""
        return self.texts[-1].since

    def verdict(self, agent: str, last_day: date) -> Verdict | None:
        """Return the verdict on an agent whose last read of the period was on `last_day`, of UTC, by the current text.

        Return None if the text does not disallow the whole site for the agent.
        """
        if self.current.state(names(agent)) != "disallowed":
            return None
        read = self._reads_of.of.get((agent, self.since))
        if read is None:
            is_logged = self._is_logged(self.since, self._view.period.end or self._view.now)
            return Verdict("Disallowed, has not read robots.txt since", self.since) if is_logged else Verdict(READING)
        is_after = last_day > read.date() or (last_day == read.date() and bool(self._reads(agent, read, None, 1)))
        return Verdict(STILL_READING) if is_after else Verdict("Disallowed, no read since", read)

    def _is_logged(self, since: datetime, until: datetime) -> bool:
        """Return whether logs have all requests from `since` until shortly before `until`."""
        first, last = self._reads_of.first, self._reads_of.last
        return first is not None and last is not None and first <= since + BEGIN and last >= until - SILENCE

    def versions(self, agent: str) -> list[Version]:
        """Return the texts that were in force in the period, for an agent; the newest first, at most VERSIONS_MAX."""
        period, spans = self._view.period, list[tuple[RobotsText, datetime, datetime | None]]()
        for text, until in pairwise([*self.texts, None]):
            end = min((each for each in (until and until.since, period.end) if each), default=None)
            if text and (end is None or end > max(text.since, period.start)):
                spans.append((text, max(text.since, period.start), end))
        return [self._version(text, agent, start, end) for text, start, end in spans[: -VERSIONS_MAX - 1 : -1]]

    def _version(self, text: RobotsText, agent: str, start: datetime, end: datetime | None) -> Version:
        parsed, read = rules.parse(text.content), self._reads_of.of.get((agent, text.since))
        if read and end and read >= end:
            read = None
        state, before, after = parsed.state(names(agent)), dict[str, int](), dict[str, int]()
        is_limited = False
        if state != "allowed":
            split = max(read, start) if read else end
            reads = {} if split == start else self._reads(agent, start, split, CHECKED_MAX)
            later = self._reads(agent, max(read, start), end, CHECKED_MAX) if read else {}
            before, after = (
                {path: count for path, count in each.items() if not parsed.allows(names(agent), path)}
                for each in (reads, later)
            )
            is_limited = CHECKED_MAX in (len(reads), len(later))
        is_logged = read is not None or self._is_logged(text.since, end or self._view.now)
        return Version(text.since, state, parsed.group(names(agent)), is_logged, read, before, after, is_limited)

    def _reads(self, agent: str, start: datetime, end: datetime | None, limit: int) -> dict[str, int]:
        query = replace(self._view.query(traffic="ai", agent=agent, verification=None), start=start, end=end)
        rows = self._view.reports.views(self._view.snapshot, query, 0, limit).rows
        return {row["path"]: row["ai"] for row in rows.select(["path", "ai"]).to_pylist()}


def robots_of(view: View) -> Robots | None:
    """Return the texts of the project of a page; None if it has none."""
    return Robots(view) if view.robots_changes else None
