"""SQLite with the tables and the query of GoatCounter, without its HTTP server.

Tables and indexes: https://github.com/arp242/goatcounter/blob/master/db/schema.gotxt, as changed by
`db/migrate/2026-02-12-1-rm-hit_stats.gotxt`. GoatCounter adds views up by path and hour, does not store the traffic or
the agent, and does not count bots. Query: `db/query/hit_list.List-counts.sql`, which lists the paths of a page. The
hourly numbers of each path, which the dashboard also reads, are left out. Here the end of the range is exclusive.
"""

import sqlite3
import time
from pathlib import Path

import duckdb

from benchmarks.data.traffic import LARGE
from benchmarks.peers.report import ROWS, Page, Range, hits_files

_SCHEMA = """
PRAGMA journal_mode = off;
PRAGMA synchronous = off;
CREATE TABLE sites (site_id integer PRIMARY KEY, code varchar NOT NULL);
CREATE TABLE paths (
    path_id integer PRIMARY KEY AUTOINCREMENT, site_id integer NOT NULL, path varchar NOT NULL,
    title varchar NOT NULL DEFAULT '', event integer DEFAULT 0
);
CREATE TABLE hit_counts (
    site_id integer NOT NULL, path_id integer NOT NULL,
    hour timestamp NOT NULL CHECK (hour = strftime('%Y-%m-%d %H:%M:%S', hour)), total integer NOT NULL,
    CONSTRAINT "hit_counts#site_id#path_id#hour" UNIQUE (site_id, path_id, hour) ON CONFLICT REPLACE
);
"""
_INDEXES = """
CREATE UNIQUE INDEX "paths#site_id#path" ON paths (site_id, lower(path));
CREATE INDEX "hit_counts#hour" ON hit_counts (hour);
CREATE INDEX "hit_counts#site_id" ON hit_counts (site_id);
ANALYZE;
"""
_PAGE = f"""
WITH x AS (
    SELECT sum(total) AS total, path_id FROM hit_counts
    WHERE hit_counts.site_id = :site AND hour >= :start AND hour < :end
    GROUP BY path_id ORDER BY total DESC, path_id DESC LIMIT {ROWS}
)
SELECT path, total FROM x JOIN paths USING (path_id) ORDER BY total DESC, path_id DESC
"""
_SERIES = """
SELECT hour, sum(total) FROM hit_counts
WHERE site_id = :site AND hour >= :start AND hour < :end GROUP BY hour ORDER BY hour
"""
_HOURS = """
SELECT site_id, path_id, strftime(hour, '%Y-%m-%d %H:%M:%S'), total
FROM (SELECT project_id, path, date_trunc('hour', ts) AS hour, count(*) AS total
      FROM read_parquet($files, hive_partitioning = true)
      WHERE traffic <> 'bot' AND strftime(date, '%Y-%m') = $month GROUP BY ALL)
JOIN paths USING (project_id, path) ORDER BY hour, site_id, path_id
"""
"""The views of a month in the order in which GoatCounter would have stored them."""
_BATCH_ROWS = 100_000
MEMORY_LIMIT = "1GB"


class GoatCounter:
    """An open database."""

    name = "SQLite as GoatCounter stores it"

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file)
        self._site = self._database.execute("SELECT site_id FROM sites WHERE code = ?", (LARGE,)).fetchone()[0]

    def page(self, range: Range) -> tuple[float, Page]:
        took_ms, rows = self._timed(_PAGE, range)
        return took_ms, rows

    def series(self, range: Range) -> tuple[float, int]:
        took_ms, rows = self._timed(_SERIES, range)
        return took_ms, sum(total for _, total in rows)

    def close(self) -> None:
        self._database.close()

    def _timed(self, sql: str, range: Range) -> tuple[float, Page]:
        values = {"site": self._site, "start": f"{range.start} 00:00:00", "end": f"{range.end} 00:00:00"}
        began = time.perf_counter()
        rows = self._database.execute(sql, values).fetchall()
        return (time.perf_counter() - began) * 1000, rows


def build(data: Path, file: Path) -> None:
    """Write a database with all hits of a lake."""
    database = duckdb.connect(config={"memory_limit": MEMORY_LIMIT})
    database.execute("SET TimeZone = 'UTC'")
    values = {"files": hits_files(data)}
    database.execute(
        "CREATE TABLE paths AS SELECT row_number() OVER (ORDER BY project_id, path) AS path_id, project_id, path,"
        " dense_rank() OVER (ORDER BY project_id) AS site_id"
        " FROM (SELECT DISTINCT project_id, path FROM read_parquet($files))",
        values,
    )
    target = sqlite3.connect(file)
    target.executescript(_SCHEMA)
    _copy(database.execute("SELECT DISTINCT site_id, project_id FROM paths"), target, "INSERT INTO sites VALUES (?, ?)")
    paths = database.execute("SELECT path_id, site_id, path FROM paths")
    _copy(paths, target, "INSERT INTO paths (path_id, site_id, path) VALUES (?, ?, ?)")
    months = "SELECT DISTINCT strftime(date, '%Y-%m') FROM read_parquet($files, hive_partitioning = true)"
    for (month,) in sorted(database.execute(months, values).fetchall()):
        hours = database.execute(_HOURS, {**values, "month": month})
        _copy(hours, target, "INSERT INTO hit_counts VALUES (?, ?, ?, ?)")
    target.executescript(_INDEXES)
    target.close()
    database.close()


def _copy(source: duckdb.DuckDBPyConnection, target: sqlite3.Connection, insert: str) -> None:
    while rows := source.fetchmany(_BATCH_ROWS):
        target.executemany(insert, rows)
    target.commit()
