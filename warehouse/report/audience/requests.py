"""Requests with their bytes and times, by agent, operator, kind, status, source or day.

A range has whole UTC days, because the table `requests` has no shorter time. A log has all requests, and servers may
post some of them again. On a day with a log, requests of servers therefore count only if a filter selects them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from warehouse.lake.staging import table_rows
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.tables import REQUESTS_TABLE

BY = ("agent", "operator", "kind", "status", "source", "date")
"""Columns by which requests are counted."""
ALL = "project_id"
"""Column by which all requests of a project are counted together."""
READERS = BY[:2]
"""Columns of BY that name a reader, who may come back after a refusal."""
REFUSED = (401, 402, 403, 429, 451, 503)
"""HTTP statuses by which a site refuses a reader."""
FIRST_DAY, LAST_DAY = date(1, 1, 1), date(9999, 12, 31)
_STORED = """
WITH stored AS (
    SELECT * REPLACE (coalesce(source, 'log') AS source)
    FROM (SELECT {columns} FROM {files} UNION ALL SELECT {columns} FROM hot)
    WHERE project_id = $project AND date >= $first AND date < $end
)
"""
_GOT_ROBOTS = "kind = 'robots' AND (status < 300 OR status = 304)"
_ROWS = """, asked AS (
    SELECT * EXCLUDE (requests, sized, bytes, errors, first_seen, last_seen), sum(requests) AS requests,
        sum(sized) AS sized, sum(bytes) AS bytes, min(first_seen) AS first_seen, max(last_seen) AS last_seen
    FROM stored WHERE requests > 0 GROUP BY ALL
), chosen AS (
    SELECT *, min(first_seen) FILTER (status IN {refused}) OVER (PARTITION BY {by}) AS refusal
    FROM asked WHERE {sources} {filters}
), times AS (
    SELECT {by} AS value, ms_below, sum(sum(requests)) OVER (PARTITION BY {by} ORDER BY ms_below) AS until,
        sum(sum(requests)) OVER (PARTITION BY {by}) AS timed
    FROM chosen WHERE ms_below IS NOT NULL GROUP BY {by}, ms_below
), quantiles AS (
    SELECT value, min(ms_below) FILTER (until >= 0.5 * timed) AS p50_ms,
        min(ms_below) FILTER (until >= 0.95 * timed) AS p95_ms
    FROM times GROUP BY value
), counted AS (
    SELECT {by} AS value, sum(requests)::BIGINT AS requests, sum(sized)::BIGINT AS sized,
        if(sum(sized) > 0, sum(bytes)::BIGINT, NULL) AS bytes,
        coalesce(sum(requests) FILTER (ms_below IS NOT NULL), 0)::BIGINT AS timed,
        coalesce(sum(requests) FILTER (cache IS NOT NULL), 0)::BIGINT AS cached,
        coalesce(sum(requests) FILTER (cache = 'hit'), 0)::BIGINT AS cache_hits,
        coalesce(sum(requests) FILTER (status IN {refused}), 0)::BIGINT AS refused,
        if({returns} AND count(refusal) > 0, sum(CASE WHEN last_seen <= refusal THEN 0 WHEN first_seen > refusal
            THEN requests WHEN first_seen = refusal THEN requests - 1 ELSE 1 END), NULL)::BIGINT AS after_refusal,
        max(last_seen) FILTER ({got_robots}) AS robots_read, max(last_seen) AS last_seen
    FROM chosen GROUP BY {by}
)
SELECT counted.value::VARCHAR AS value, requests, bytes, sized, {sized_known} AS bytes_known, timed,
    {timed_known} AS times_known, p50_ms, p95_ms, cached, {cached_known} AS cache_known, cache_hits, refused,
    after_refusal, robots_read, last_seen
FROM counted LEFT JOIN quantiles ON counted.value IS NOT DISTINCT FROM quantiles.value
ORDER BY {order} counted.value NULLS LAST
"""
_KNOWN = "greatest(if({0} > 0, 0.1, 0), least(if({0} < requests, 99.9, 100), round(100 * {0} / requests, 1)))"
"""Percentage of the requests, rounded to 0 only for none of them, and to 100 only for all."""
_ONE_SOURCE = "(source = 'log' OR date NOT IN (SELECT date FROM asked WHERE source = 'log'))"

_ROBOTS_READS = f"""
SELECT agent, since, min(if(first_seen >= since, first_seen, last_seen)) AS read
FROM stored, unnest($since::TIMESTAMPTZ[]) AS texts (since)
WHERE {_GOT_ROBOTS} AND traffic = 'ai' AND last_seen >= since
GROUP BY ALL
"""
_LOGGED = "SELECT min(first_seen) AS first, max(last_seen) AS last FROM stored WHERE source = 'log'"


@dataclass(frozen=True, slots=True)
class RequestQuery:
    """Requests, or errors, of a project from the UTC day `first` to the day before `end`, with some values.

    Of requests, `filters` are values of columns. Of errors: see `errors`.
    """

    project: str
    first: date = FIRST_DAY
    end: date = LAST_DAY
    filters: Mapping[str, Any] = field(default_factory=dict)


def rows(database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: RequestQuery, by: str) -> pa.Table:
    """Return the requests by one of BY, or by ALL in one row: most first, unknown values after their equals.

    Columns: value, requests, bytes of the `sized` ones, p50_ms and p95_ms of the `timed` ones as upper bounds,
    `cache_hits` among the `cached` ones, the shares `..._known` of these in percent, `refused`, `after_refusal` (lower
    bound of the requests of one of READERS after its first refusal), robots_read and last_seen. `snapshot` is of the
    table `requests`.
    """
    filters = "".join(f" AND {name} = ${name}" for name in query.filters)
    sources = "true" if "source" in query.filters else _ONE_SOURCE
    order = "counted.value DESC," if by == "date" else "requests DESC,"
    rules = {"returns": by in READERS, "refused": REFUSED, "got_robots": _GOT_ROBOTS}
    known = {f"{name}_known": _KNOWN.format(name) for name in ("sized", "timed", "cached")}
    sql = _ROWS.format(by=by, sources=sources, filters=filters, order=order, **rules, **known)
    return counted(database, snapshot, query, sql, query.filters)


def counted(
    database: duckdb.DuckDBPyConnection, snapshot: Snapshot, query: RequestQuery, sql: str, values: Mapping[str, Any]
) -> pa.Table:
    """Return the result of a statement that begins after the relation `stored`: rows of the project and days."""
    months = f"{query.first:%Y-%m}".zfill(7), f"{query.end:%Y-%m}".zfill(7)
    files = [file for file in snapshot.files if months[0] <= file.partition <= months[1]]
    relation = engine.rows(REQUESTS_TABLE, files) if files else engine.no_rows(REQUESTS_TABLE)
    stored = _STORED.format(columns=", ".join(REQUESTS_TABLE.schema.names), files=relation)
    days = {"project": query.project, "first": query.first, "end": query.end}
    with engine.interruptible_cursor(database) as cursor:
        cursor.register("hot", table_rows(REQUESTS_TABLE, snapshot.hot))
        return cursor.sql(stored + sql, params={**days, **values}).to_arrow_table()


class RobotsReads(NamedTuple):
    """First requests for robots.txt, by agent and by a time from which on they count.

    `first` and `last` are the times of the first and last request in logs, from the day of the first of these times on;
    None if there was none.
    """

    of: dict[tuple[str, datetime], datetime]
    first: datetime | None
    last: datetime | None


def robots_reads(
    database: duckdb.DuckDBPyConnection, snapshot: Snapshot, project: str, since: Sequence[datetime]
) -> RobotsReads:
    """Return when each AI agent first got robots.txt from each of some times on.

    The table has the first and last request of a day: of a day with requests before and after a time, the last counts.
    """
    query = RequestQuery(project, min(since).astimezone(UTC).date())
    read = counted(database, snapshot, query, _ROBOTS_READS, {"since": list(since)}).to_pylist()
    (logged,) = counted(database, snapshot, query, _LOGGED, {}).to_pylist()
    of = {(row["agent"], row["since"].astimezone(UTC)): row["read"].astimezone(UTC) for row in read}
    return RobotsReads(of, **logged)
