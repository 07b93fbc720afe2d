"""Requests of AI agents and bots that were answered with an error, by path, agent, traffic and status.

The counts are those of `daily_errors` and of the errors that wait in the hot log. A range has whole UTC days, because
the table has no shorter time. The source policy of a project does not apply: the table has no source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import duckdb
import pyarrow as pa

from warehouse.columns.filters import match_path
from warehouse.lake.staging import table_rows
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.tables import DAILY_ERRORS_TABLE, Spec

FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
GroupBy = Literal["path", "agent"]
_COLUMNS = "project_id, date, path, traffic, agent, status, requests, first_seen, last_seen"
_CHOSEN = f"""
WITH counted AS (SELECT {_COLUMNS} FROM {{files}} UNION ALL SELECT {_COLUMNS} FROM hot),
chosen AS (FROM counted WHERE project_id = $project AND date >= $first AND date < $end {{filters}})
"""
_ADDED_UP = "sum(requests)::BIGINT AS requests, min(first_seen) AS first_seen, max(last_seen) AS last_seen"
_ROWS = f"""
SELECT path, agent, traffic, status, {_ADDED_UP}
FROM chosen GROUP BY path, agent, traffic, status
ORDER BY requests DESC, path NULLS LAST, agent NULLS LAST, status, traffic
"""
_GROUPS = f"""
SELECT {{by}}, {_ADDED_UP}, count(DISTINCT {{other}}) AS {{other}}s, list_sort(list(DISTINCT status)) AS statuses,
  bool_or(traffic = 'ai') AS has_ai, list(date) AS days, list(requests) AS requests_of_days
FROM chosen GROUP BY {{by}} ORDER BY {{by}} IS NULL, requests DESC, {{by}} LIMIT $limit OFFSET $offset
"""
_OTHER = {"path": "agent", "agent": "path"}
_FILTERS = {
    "traffic": "traffic = $traffic",
    "agent": "agent = $agent",
    "agents": "traffic = 'ai' AND list_contains($agents::VARCHAR[], agent)",
    "status": "status = $status",
}


@dataclass(frozen=True, slots=True)
class ErrorQuery:
    """Errors of a project from the UTC day `first` to the day before `end`. A filter that is None matches all.

    `path` is as in `Filters`. `agents` are the AI agents of an operator or purpose, which the table does not have.
    """

    project: str
    first: date = FIRST_DAY
    end: date = LAST_DAY
    path: str | None = None
    traffic: str | None = None
    agent: str | None = None
    status: int | None = None
    agents: tuple[str, ...] | None = None

    @property
    def filters(self) -> Mapping[str, Any]:
        """Return the filters that apply beside `path`, with their values."""
        values = {name: getattr(self, name) for name in _FILTERS}
        return {name: value for name, value in values.items() if value is not None}


def rows(database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: ErrorQuery) -> pa.Table:
    """Return path, agent, traffic, status, requests, first_seen and last_seen: most requests first.

    Rows with equal requests are in the byte order of path and agent, unknown ones last. `snapshot` is of the table.
    """
    return _counted(database, snapshot, query, _ROWS)


def groups(
    database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: ErrorQuery, by: GroupBy, offset: int, limit: int
) -> pa.Table:
    """Return path or agent, requests, first_seen, last_seen, the number of agents or paths, statuses, has_ai, days and
    requests_of_days: most requests first, unknown ones last. `days` are UTC days, and repeat."""
    sql = _GROUPS.format(by=by, other=_OTHER[by])
    return _counted(database, snapshot, query, sql, offset=offset, limit=limit)


def _counted(
    database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: ErrorQuery, sql: str, **more: int
) -> pa.Table:
    values: dict[str, Any] = {"project": query.project, "first": query.first, "end": query.end, **query.filters, **more}
    matches = [_FILTERS[name] for name in query.filters] + [*(match_path(query.path, values) if query.path else ())]
    files = files_of_months(DAILY_ERRORS_TABLE, snapshot, query.first, query.end)
    chosen = _CHOSEN.format(files=files, filters="".join(f" AND {each}" for each in matches))
    with engine.interruptible_cursor(database) as cursor:
        cursor.register("hot", table_rows(DAILY_ERRORS_TABLE, snapshot.hot))
        return cursor.sql(chosen + sql, params=values).to_arrow_table()


def files_of_months(table: Spec, snapshot: Snapshot, first: date, end: date) -> str:
    """Return the relation of the files whose months have a day from `first` to the day before `end`."""
    months = f"{first:%Y-%m}".zfill(7), f"{end:%Y-%m}".zfill(7)
    files = [file for file in snapshot.files if months[0] <= file.partition <= months[1]]
    return engine.rows(table, files) if files else engine.no_rows(table)
