"""Requests of AI agents and bots that were answered with an error, by path, agent, traffic and status.

The counts are those of `daily_errors` and of the errors that wait in the hot log. A range has whole UTC days, because
the table has no shorter time. The source policy of a project does not apply: the table has no source.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from warehouse import daily_count
from warehouse.columns.filters import match_path
from warehouse.lake.delta_table import DAILY_ERRORS_TABLE
from warehouse.query import engine
from warehouse.query.hits_snapshot import HitsReader, HitsSnapshot
from warehouse.query.moment import Moment

FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
_COLUMNS = "project_id, date, path, traffic, agent, status, requests, first_seen, last_seen"
_CHOSEN = f"""
WITH counted AS (SELECT {_COLUMNS} FROM {{files}} UNION ALL SELECT {_COLUMNS} FROM hot),
chosen AS (FROM counted WHERE project_id = $project AND date >= $first AND date < $end {{filters}})
"""
_ROWS = """
SELECT path, agent, traffic, status, sum(requests)::BIGINT AS requests, min(first_seen) AS first_seen,
       max(last_seen) AS last_seen
FROM chosen GROUP BY path, agent, traffic, status
ORDER BY requests DESC, path NULLS LAST, agent NULLS LAST, status, traffic
"""
_TRENDS = """
SELECT path, agent, traffic, status, sum(requests)::BIGINT AS requests, min(first_seen) AS first_seen,
       max(last_seen) AS last_seen, list(date) AS days, list(requests) AS requests_of_days
FROM (SELECT path, agent, traffic, status, date, sum(requests)::BIGINT AS requests, min(first_seen) AS first_seen,
             max(last_seen) AS last_seen
      FROM chosen GROUP BY ALL)
GROUP BY path, agent, traffic, status
ORDER BY requests DESC, path NULLS LAST, agent NULLS LAST, status, traffic
LIMIT $limit OFFSET $offset
"""
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
    def filters(self) -> Mapping[str, str | int | list[str]]:
        """Return the filters that apply beside `path`, with their values."""
        values = {
            "traffic": self.traffic,
            "agent": self.agent,
            "agents": None if self.agents is None else [*self.agents],
            "status": self.status,
        }
        return {name: value for name, value in values.items() if value is not None}


class ErrorReports:
    """Reports of errors of one process. Safe to call from several threads."""

    def __init__(self, reader: HitsReader, spill: Path) -> None:
        """Create the reports. `reader` has the source `hits_snapshot.DAILY_ERRORS`, and is closed with the reports."""
        self._reader = reader
        self._database = engine.connect(spill)

    def rows(self, query: ErrorQuery, moment: Moment | None = None) -> pa.Table:
        """Return path, agent, traffic, status, requests, first_seen and last_seen: most requests first.

        Rows with equal requests are in the byte order of path and agent, unknown ones last. `moment` is that of a
        snapshot of `hits`; None for the newest errors.

        Raises:
            DataIncomplete, MomentExpired: see `HitsReader.take_through`.
        """
        snapshot = self._reader.take() if moment is None else self._reader.take_through(moment)
        return self._run(_ROWS, query, snapshot)

    def trends(self, query: ErrorQuery, offset: int, limit: int) -> pa.Table:
        """Return some of `rows` with two more columns: days, the UTC days with requests, and requests_of_days.

        Raises:
            DataIncomplete: see `HitsReader.take`.
        """
        return self._run(_TRENDS, query, self._reader.take(), offset=offset, limit=limit)

    def close(self) -> None:
        self._database.close()
        self._reader.close()

    def _run(self, sql: str, query: ErrorQuery, snapshot: HitsSnapshot, **more: int) -> pa.Table:
        values: dict[str, Any] = {
            "project": query.project,
            "first": query.first,
            "end": query.end,
            **query.filters,
            **more,
        }
        matches = [_FILTERS[name] for name in query.filters] + [*(match_path(query.path, values) if query.path else ())]
        conditions = "".join(f" AND {each}" for each in matches)
        with engine.interruptible_cursor(self._database) as cursor:
            cursor.register("hot", daily_count.count_errors(snapshot.hot))
            chosen = _CHOSEN.format(files=_files(snapshot, query), filters=conditions)
            return cursor.sql(chosen + sql, params=values).to_arrow_table()


def _files(snapshot: HitsSnapshot, query: ErrorQuery) -> str:
    """Return the relation of the files whose months are in the range."""
    first, last = f"{query.first:%Y-%m}".zfill(7), f"{query.end:%Y-%m}".zfill(7)
    files = [file for file in snapshot.files if first <= file.partition <= last]
    return engine.rows(DAILY_ERRORS_TABLE, files) if files else engine.no_rows(DAILY_ERRORS_TABLE)
