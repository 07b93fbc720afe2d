"""Coverage of a project by its sources: the first and last hit of each source, and the days between without a hit."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters
from warehouse.columns.sources import SOURCES
from warehouse.control.policy import Periods, Policy
from warehouse.control.policy import on as policy_on
from warehouse.lake.delta_table import HITS_TABLE
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange
from warehouse.report.cells import Cells, Scope
from warehouse.report.sources import silence, warnings
from warehouse.report.sources.silence import Span
from warehouse.report.sources.warnings import MISSING_DAYS_MAX, SourceWarning
from warehouse.report.statements import Statements

BEACON, LOGS = SOURCES[0], SOURCES[1:]
"""The source of the hits that pages send, and the sources of logs."""
_FIRST_AND_LAST = """
SELECT source, min(ts) AS first_hit, max(ts) AS last_hit FROM {rows} WHERE project_id = $project GROUP BY source
"""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SourceCoverage:
    """A source that has hits. `missing_days` are the UTC days without a hit between the first and the last hit.

    Of more than MISSING_DAYS_MAX days, whose number is `missing`, the last ones are listed. `spans` are the times in
    which the source counted: see `silence.spans`.
    """

    source: str
    first_hit: datetime
    last_hit: datetime
    missing_days: tuple[date, ...]
    spans: tuple[Span, ...]
    missing: int = 0

    @property
    def silent_since(self) -> date | None:
        """Return the first UTC day on which the source, which is silent now, sent no hit; None if it is not silent."""
        return end.date() if (end := self.spans[-1].end) else None


@dataclass(frozen=True, slots=True)
class Coverage:
    """The sources of a project in the order of SOURCES, today's policy by which they count, and warnings for its owner.

    `overlap_days` is the number of days on which pages and logs (`log` or `server`) both have views of people.
    `unbeaconed` is the number of views in logs that look like people and are not counted, because people count from
    beacons. `beaconed` is the number of them that beacons of the same days can have counted.
    """

    sources: tuple[SourceCoverage, ...]
    policy: Policy
    warnings: tuple[SourceWarning, ...]
    overlap_days: int = 0
    unbeaconed: int = 0
    beaconed: int = 0

    @property
    def counted_twice(self) -> tuple[SourceWarning, ...]:
        """Return the warnings about sources whose views count twice."""
        return tuple(each for each in self.warnings if each.kind == "counted_twice")

    @property
    def first_hits(self) -> dict[str, datetime]:
        """Return the time of the first hit of each source."""
        return {each.source: each.first_hit for each in self.sources}


def first_and_last_in_files(statements: Statements, snapshot: Snapshot, project: str, days: pa.Table) -> pa.Table:
    """Return the times of the first and last hit of each source: columns source, first_hit and last_hit.

    `days` are the counts of the files of the snapshot by source and day. Only the first and the last day of each source
    are read.
    """
    read = {day.isoformat() for of_source in people_by_day(days).values() for day in (min(of_source), max(of_source))}
    files = [file for file in snapshot.files if file.partition in read]
    rows = engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)
    scope = Scope(project, TimeRange(), Filters())
    chosen = Cells("", {"project": project})
    return statements.fetch(snapshot, scope, chosen, _FIRST_AND_LAST.format(rows=rows))


def first_and_last_in_rows(hot: pa.Table, project: str) -> pa.Table:
    """Return the times of the first and last hot row of each source, in the columns of `first_and_last_in_files`."""
    rows = hot.filter(pc.field("project_id") == project).select(["source", "ts"])
    times = rows.group_by("source").aggregate([("ts", "min"), ("ts", "max")])
    return pa.table({"source": times["source"], "first_hit": times["ts_min"], "last_hit": times["ts_max"]})


def summarize(
    days: pa.Table, first_and_last: pa.Table, now: datetime, policy: Periods = (), counted_days: pa.Table | None = None
) -> Coverage:
    """Return the coverage.

    `days` are counts of all hits of the project by source and day, `counted_days` those of the hits that its policy
    counts; None if it counts all.
    """
    people = people_by_day(days)
    sources = [
        _source(source, people[source], first_and_last.filter(pc.field("source") == source), now)
        for source in SOURCES
        if source in people
    ]
    unbeaconed = _unbeaconed(people, people if counted_days is None else people_by_day(counted_days), policy)
    both = {day for name in LOGS for day in _with_people(people, BEACON) & _with_people(people, name)}
    return Coverage(
        tuple(sources),
        policy_on(policy, now.date()),
        tuple(_warnings(people, sources, policy, now)),
        len(both),
        sum(unbeaconed.values()),
        sum(min(views, people.get(BEACON, {}).get(day, 0)) for day, views in unbeaconed.items()),
    )


def _with_people(people: Mapping[str, Mapping[date, int]], source: str) -> set[date]:
    return {day for day, views in people.get(source, {}).items() if views}


def _unbeaconed(
    people: Mapping[str, Mapping[date, int]], counted_people: Mapping[str, Mapping[date, int]], policy: Periods
) -> Counter[date]:
    """Return the views in logs that look like people, by the days on which people count from beacons."""
    unbeaconed = Counter[date]()
    for name in LOGS:
        for day, views in people.get(name, {}).items():
            if policy_on(policy, day) == "beacon_people_log_machines":
                unbeaconed[day] += views - counted_people.get(name, {}).get(day, 0)
    return unbeaconed


def people_by_day(days: pa.Table) -> dict[str, dict[date, int]]:
    """Return the human views of each source on each day that has a hit of the source."""
    people: dict[str, dict[date, int]] = {}
    for source, day, human in zip(*(days[name].to_pylist() for name in ("source", "day", "human")), strict=True):
        of_source = people.setdefault(source, {})
        of_source[day] = of_source.get(day, 0) + human
    return people


def _source(source: str, days: Mapping[date, int], first_and_last: pa.Table, now: datetime) -> SourceCoverage:
    first, last = min(days), max(days)
    missing = (last - first).days + 1 - len(days)
    backwards = (last - number * _DAY for number in range((last - first).days))
    listed = islice((day for day in backwards if day not in days), min(missing, MISSING_DAYS_MAX))
    first_hit, last_hit = pc.min(first_and_last["first_hit"]).as_py(), pc.max(first_and_last["last_hit"]).as_py()
    spans = silence.spans(sorted(day.toordinal() for day in days), first_hit, last_hit, now)
    return SourceCoverage(source, first_hit, last_hit, tuple(listed)[::-1], tuple(spans), missing)


def _warnings(
    people: Mapping[str, Mapping[date, int]], sources: Sequence[SourceCoverage], policy: Periods, now: datetime
) -> Iterator[SourceWarning]:
    yield from warnings.counted_twice(people, policy)
    for each in sources:
        if each.silent_since:
            yield SourceWarning("silent", (each.source,), (now - each.last_hit).days, each.last_hit.date())
    for each in sources:
        if each.missing > MISSING_DAYS_MAX:
            yield SourceWarning("unlisted", (each.source,), each.missing)
