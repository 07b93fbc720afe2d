"""Requests of AI agents and bots that were answered with an error, by path, agent, traffic and status.

The counts are the errors of `requests`. A range has whole UTC days, because the table has no shorter time. The source
policy of a project does not apply.
"""

from typing import Any, Literal

import duckdb
import pyarrow as pa

from warehouse.columns.filters import match_path
from warehouse.query.snapshot import Snapshot
from warehouse.report.audience.requests import RequestQuery, counted

GroupBy = Literal["path", "agent"]
_CHOSEN = """, chosen AS (
    SELECT * REPLACE (errors AS requests) FROM stored WHERE errors > 0 {filters}
)
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
_OF_AGENTS = "traffic = 'ai' AND list_contains($agents::VARCHAR[], agent)"


def rows(database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: RequestQuery) -> pa.Table:
    """Return path, agent, traffic, status, requests, first_seen and last_seen: most requests first.

    Rows with equal requests are in the byte order of path and agent, unknown ones last. `snapshot` is of `requests`.
    Filters: `path` as in `Filters`, `agents` (the AI agents of an operator or purpose), and values of columns.
    """
    return _counted(database, snapshot, query, _ROWS)


def groups(
    database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: RequestQuery, by: GroupBy, offset: int, limit: int
) -> pa.Table:
    """Return path or agent, requests, first_seen, last_seen, the number of agents or paths, statuses, has_ai, days and
    requests_of_days: most requests first, unknown ones last. `days` are UTC days, and repeat."""
    return _counted(database, snapshot, query, _GROUPS.format(by=by, other=_OTHER[by]), offset=offset, limit=limit)


def _counted(
    database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: RequestQuery, sql: str, **more: int
) -> pa.Table:
    values: dict[str, Any] = {name: value for name, value in query.filters.items() if name != "path"}
    matches = [_OF_AGENTS if name == "agents" else f"{name} = ${name}" for name in values]
    matches += match_path(query.filters["path"], values) if "path" in query.filters else ()
    chosen = _CHOSEN.format(filters="".join(f" AND {each}" for each in matches))
    return counted(database, snapshot, query, chosen + sql, values | more)
