"""What AI agents read against the robots.txt of the site.

A text is in force until the next one. A disallowed read is a violation if the agent had requested the text in force
before, which only access logs show.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise

from api.dashboard.robots import rules, texts
from api.dashboard.robots.rules import RobotsRules, State, names
from api.dashboard.robots.texts import RobotsText
from api.dashboard.web.view import View

CHECKED_MAX = 10_000
"""Maximum number of paths that are compared with a text, those with most reads first."""


@dataclass(frozen=True, slots=True)
class Version:
    """A text that was in force in a part of the period, and what it means for an agent.

    `group` is the agent's group in the text; None without one. `read` is the time at which the agent first requested
    the text, also before the period; None if no log has such a request. `is_logged` is whether a log can have one.
    `before` and `after` are the reads of disallowed paths before and after `read`.
    """

    since: datetime
    state: State
    group: str | None
    is_logged: bool
    read: datetime | None
    before: Mapping[str, int]
    after: Mapping[str, int]

    @property
    def violations(self) -> int | None:
        """Return the number of violations; None if no log tells whether the agent had requested the text."""
        return sum(self.after.values()) if self.is_logged else None


class Robots:
    """The texts of a project. `current` are the rules that are in force."""

    def __init__(self, view: View, found: Sequence[RobotsText]) -> None:
        self.texts, self.current, self._view = found, rules.parse(found[-1].content), view
        moment, project = view.snapshot.moment, view.project.id
        self._first_reads = view.reports.robots_reads(project, moment, [text.since for text in found])
        logs = [each for each in view.reports.source_coverage(view.snapshot, project).sources if each.source == "log"]
        self._logged_until = max((log.last_hit for log in logs), default=None)

    @property
    def since(self) -> datetime:
        """Return the time from which the current text is in force."""
        return self.texts[-1].since

    def is_logged(self, text: RobotsText) -> bool:
        """Return whether a log of the site reaches into the time of a text."""
        return self._logged_until is not None and self._logged_until >= text.since

    def name(self, agent: str, last_day: date) -> str | None:
        """Return what an agent whose last read of the period was on `last_day`, of UTC, made of the current text.

        Return None if the text does not disallow the whole site for the agent.
        """
        if self.current.state(names(agent)) != "disallowed":
            return None
        text = self.texts[-1]
        if self.is_logged(text) and (agent, text.since) not in self._first_reads:
            return "Disallowed, has not read robots.txt since"
        start = self._first_reads.get((agent, text.since), text.since)
        is_reading = last_day > start.date() or (last_day == start.date() and bool(self._reads(agent, start, None)))
        return "Disallowed, still reading" if is_reading else "Disallowed, no read since"

    def marks(self) -> Iterator[tuple[datetime, str]]:
        """Yield the time of each text and the text of its mark on the chart."""
        for text in self.texts:
            yield text.since, f"robots.txt of {self._view.day(text.since)}"

    def versions(self, agent: str) -> list[Version]:
        """Return the texts that were in force in the period, for an agent; the newest first."""
        period = self._view.period
        result = []
        for text, until in pairwise([*self.texts, None]):
            end = min((each for each in (until and until.since, period.end) if each), default=None)
            if text and (end is None or end > max(text.since, period.start)):
                result.append(self._version(text, agent, max(text.since, period.start), end))
        return result[::-1]

    def _version(self, text: RobotsText, agent: str, start: datetime, end: datetime | None) -> Version:
        parsed, read = rules.parse(text.content), self._first_reads.get((agent, text.since))
        if read and end and read >= end:
            read = None
        state, before, after = parsed.state(names(agent)), dict[str, int](), dict[str, int]()
        if state != "allowed":
            split = max(read, start) if read else end
            before = {} if split == start else self._disallowed(parsed, agent, start, split)
            after = self._disallowed(parsed, agent, max(read, start), end) if read else {}
        return Version(text.since, state, parsed.group(names(agent)), self.is_logged(text), read, before, after)

    def _disallowed(self, parsed: RobotsRules, agent: str, start: datetime, end: datetime | None) -> dict[str, int]:
        reads = self._reads(agent, start, end).items()
        return {path: count for path, count in reads if not parsed.allows(names(agent), path)}

    def _reads(self, agent: str, start: datetime, end: datetime | None) -> dict[str, int]:
        query = replace(self._view.query(traffic="ai", agent=agent, verification=None), start=start, end=end)
        rows = self._view.reports.views(self._view.snapshot, query, 0, CHECKED_MAX).rows
        return {row["path"]: row["ai"] for row in rows.select(["path", "ai"]).to_pylist()}


def robots_of(view: View) -> Robots | None:
    """Return the texts of the project of a page; None if it has none."""
    found = texts.versions(view.visit.state.control, view.project.id)
    return Robots(view, found) if found else None
