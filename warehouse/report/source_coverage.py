"""Coverage of a project by its sources: when each of them sent hits, and what its reports could therefore count."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters
from warehouse.columns.sources import SOURCES
from warehouse.control.policy import Periods, Policy
from warehouse.control.policy import on as policy_on
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange
from warehouse.report import source_warnings
from warehouse.report.cells import Cells, Scope
from warehouse.report.measured import Measured, Span, of_kinds, spans
from warehouse.report.results import Query
from warehouse.report.source_warnings import MISSING_DAYS_MAX, SourceWarning
from warehouse.report.statements import Statements, without_waiting
from warehouse.tables import HITS_TABLE

BEACON, LOGS = SOURCES[0], SOURCES[1:]
"""The source of the hits that pages send, and the sources of logs."""
_FIRST_AND_LAST = """
SELECT source, min(ts) AS first_hit, max(ts) AS last_hit FROM {rows} WHERE project_id = $project GROUP BY source
"""
_TIME = pa.timestamp("us", "UTC")
_SOURCE_DAYS = pa.schema([("source", pa.string()), ("days", pa.list_(pa.date32())), ("first", _TIME), ("last", _TIME)])
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SourceCoverage:
    """A source that has hits. `missing_days` are the UTC days without a hit between the first and the last hit.

    Of more than MISSING_DAYS_MAX days, whose number is `missing`, the last ones are listed. `spans` are the times in
    which the source counted: see `measured.spans`.
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


def coverage(statements: Statements, snapshot: Snapshot, project: str, policy: Periods = ()) -> Coverage:
    """Return the coverage of the sources of a project at the moment of the snapshot. `policy` is the project's."""
    days = statements.counts(snapshot, Scope(project, TimeRange(), Filters()), "source", "day")
    counted_days = statements.counts(snapshot, Scope(project, TimeRange(), Filters(policy)), "source", "day")
    return _summarize(days, _first_and_last(statements, snapshot, project), _taken(snapshot), policy, counted_days)


def first_hit(statements: Statements, snapshot: Snapshot, project: str) -> datetime | None:
    """Return the time of the first hit of a project, or None."""
    times = _first_and_last(statements, snapshot, project)["first_hit"].to_pylist()
    return min((each for each in times if each is not None), default=None)


def measured(statements: Statements, snapshot: Snapshot, query: Query, policy: Periods) -> Measured:
    """Return when each kind of readers was counted by the sources that a query selects. Its range is not used."""
    now, project = _taken(snapshot), query.project
    key = project, "source days", snapshot.rows_key
    rows = statements.cached(key, lambda: _source_days(statements, snapshot, project)).to_pylist()
    of_sources = {row["source"]: tuple(_spans(row["days"], row["first"], row["last"], now)) for row in rows}
    chosen = {source: of_sources.get(source, ()) for source in query.filters.selected_sources}
    return Measured(of_kinds(chosen, policy), min((row["first"] for row in rows), default=None), now, chosen)


def _spans(days: Iterable[date], first_hit: datetime, last_hit: datetime, now: datetime) -> Iterator[Span]:
    return spans(sorted(day.toordinal() for day in days), first_hit, last_hit, now)


def _source_days(statements: Statements, snapshot: Snapshot, project: str) -> pa.Table:
    """Return the days on which each source sent hits, and its first and last hit: source, days, first and last."""
    of_files = _days_in_files(statements, without_waiting(snapshot), project).select(["source", "day"])
    hot = snapshot.hot.filter(pc.field("project_id") == project)
    of_waiting = pa.table({"source": hot["source"], "day": hot["ts"].cast(pa.date32())})
    days = pa.concat_tables([of_files, of_waiting]).group_by("source").aggregate([("day", "distinct")])
    times = _first_and_last(statements, snapshot, project).group_by("source")
    times = times.aggregate([("first_hit", "min"), ("last_hit", "max")]).sort_by("source")
    sorted_days = days.sort_by("source")["day_distinct"]
    return pa.table([times["source"], sorted_days, times["first_hit_min"], times["last_hit_max"]], _SOURCE_DAYS)


def _days_in_files(statements: Statements, stored: Snapshot, project: str) -> pa.Table:
    return statements.counts(stored, Scope(project, TimeRange(), Filters()), "source", "day")


def _first_and_last(statements: Statements, snapshot: Snapshot, project: str) -> pa.Table:
    """Return the times of the first and last hit of each source, in files and in waiting rows."""
    stored = without_waiting(snapshot)
    of_files = statements.cached(
        (project, "first and last", stored.rows_key), lambda: _first_and_last_in_files(statements, stored, project)
    )
    hot = snapshot.hot.filter(pc.field("project_id") == project).select(["source", "ts"])
    times = hot.group_by("source").aggregate([("ts", "min"), ("ts", "max")])
    of_waiting = pa.table({"source": times["source"], "first_hit": times["ts_min"], "last_hit": times["ts_max"]})
    return pa.concat_tables([of_files, of_waiting])


def _first_and_last_in_files(statements: Statements, snapshot: Snapshot, project: str) -> pa.Table:
    """Read the first and the last day of each source."""
    days = _people_by_day(_days_in_files(statements, snapshot, project)).values()
    read = {day.isoformat() for of_source in days for day in (min(of_source), max(of_source))}
    files = [file for file in snapshot.files if file.partition in read]
    rows = engine.rows(HITS_TABLE, files) if files else engine.no_rows(HITS_TABLE)
    scope = Scope(project, TimeRange(), Filters())
    return statements.fetch(snapshot, scope, Cells("", {"project": project}), _FIRST_AND_LAST.format(rows=rows))


def _taken(snapshot: Snapshot) -> datetime:
    return datetime.fromtimestamp(snapshot.moment.taken_us / 1_000_000, UTC)


def _summarize(days: pa.Table, times: pa.Table, now: datetime, policy: Periods, counted: pa.Table) -> Coverage:
    """Return the coverage. `days` are counts by source and day, `counted` those under the policy."""
    people = _people_by_day(days)
    sources = [
        _source(source, people[source], times.filter(pc.field("source") == source), now)
        for source in SOURCES
        if source in people
    ]
    unbeaconed = _unbeaconed(people, _people_by_day(counted), policy)
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


def _people_by_day(days: pa.Table) -> dict[str, dict[date, int]]:
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
    counting = tuple(_spans(days, first_hit, last_hit, now))
    return SourceCoverage(source, first_hit, last_hit, tuple(listed)[::-1], counting, missing)


def _warnings(
    people: Mapping[str, Mapping[date, int]], sources: Sequence[SourceCoverage], policy: Periods, now: datetime
) -> Iterator[SourceWarning]:
    yield from source_warnings.counted_twice(people, policy)
    for each in sources:
        if each.silent_since:
            yield SourceWarning("silent", (each.source,), (now - each.last_hit).days, each.last_hit.date())
    for each in sources:
        if each.missing > MISSING_DAYS_MAX:
            yield SourceWarning("unlisted", (each.source,), each.missing)
