"""Which sources sent hits, and when: for the coverage of a project, and for what its reports could count."""

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa

from warehouse.columns.filters import Filters
from warehouse.control.policy import Periods
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange
from warehouse.report import source_coverage as sources
from warehouse.report.cells import Scope
from warehouse.report.results import Query
from warehouse.report.source_coverage import Coverage
from warehouse.report.sources import days, silence
from warehouse.report.sources.measured import Measured, of_kinds
from warehouse.report.statements import Statements, without_waiting


def source_coverage(statements: Statements, snapshot: Snapshot, project: str, policy: Periods = ()) -> Coverage:
    """Return the coverage of the sources of a project at the moment of the snapshot. `policy` is the project's."""
    scope = Scope(project, TimeRange(), Filters())
    under_policy = replace(scope, filters=Filters(policy))
    return sources.summarize(
        statements.counts(snapshot, scope, "source", "day"),
        _first_and_last(statements, snapshot, project),
        _taken(snapshot),
        policy,
        statements.counts(snapshot, under_policy, "source", "day") if policy else None,
    )


def first_hit(statements: Statements, snapshot: Snapshot, project: str) -> datetime | None:
    """Return the time of the first hit of a project, or None."""
    times = _first_and_last(statements, snapshot, project)["first_hit"].to_pylist()
    return min((each for each in times if each is not None), default=None)


def measured(statements: Statements, snapshot: Snapshot, query: Query, policy: Periods) -> Measured:
    """Return when each kind of readers was counted by the sources that a query selects. Its range is not used."""
    now, project = _taken(snapshot), query.project
    key = project, "source days", snapshot.rows_key
    rows = statements.cached(key, lambda: _source_days(statements, snapshot, project)).to_pylist()
    spans = {row["source"]: tuple(silence.spans(row["days"], row["first"], row["last"], now)) for row in rows}
    chosen = {source: spans.get(source, ()) for source in query.filters.selected_sources}
    return Measured(of_kinds(chosen, policy), min((row["first"] for row in rows), default=None), now, chosen)


def _source_days(statements: Statements, snapshot: Snapshot, project: str) -> pa.Table:
    stored = without_waiting(snapshot)
    of_files = statements.cached(
        (project, "source days of files", stored.rows_key),
        lambda: days.in_files(_in_files(statements, stored, project)),
    )
    of_waiting = days.in_rows(snapshot.hot, project)
    return days.union(of_files, of_waiting, _first_and_last(statements, snapshot, project))


def _in_files(statements: Statements, stored: Snapshot, project: str) -> pa.Table:
    return statements.counts(stored, Scope(project, TimeRange(), Filters()), "source", "day")


def _first_and_last(statements: Statements, snapshot: Snapshot, project: str) -> pa.Table:
    """Return the times of the first and last hit of each source, in files and in waiting rows."""
    stored = without_waiting(snapshot)
    of_files = statements.cached(
        (project, "first and last", stored.rows_key),
        lambda: sources.first_and_last_in_files(statements, stored, project, _in_files(statements, stored, project)),
    )
    return pa.concat_tables([of_files, sources.first_and_last_in_rows(snapshot.hot, project)])


def _taken(snapshot: Snapshot) -> datetime:
    return datetime.fromtimestamp(snapshot.moment.taken_us / 1_000_000, UTC)
