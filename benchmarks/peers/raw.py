"""DuckDB over the Parquet files of `hits`."""

import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.data.traffic import LARGE
from benchmarks.peers.report import ROWS, Page, Range, hits_files

_FROM = """
FROM read_parquet($files, hive_partitioning = true)
WHERE project_id = $project AND date >= $start AND date < $end
"""
_PAGE = f"""
SELECT path, count(*) FILTER (traffic = 'human') AS human, count(*) FILTER (traffic = 'ai') AS ai,
       count(*) FILTER (traffic = 'bot') AS bot, human + ai AS total
{_FROM} GROUP BY path HAVING total > 0 ORDER BY total DESC, path LIMIT {ROWS}
"""
_SERIES = f"""
SELECT date, count(*) FILTER (traffic = 'human') AS human, count(*) FILTER (traffic = 'ai') AS ai,
       count(*) FILTER (traffic = 'bot') AS bot, human + ai AS total
{_FROM} GROUP BY date ORDER BY date
"""
_BREAKDOWN = f"""
SELECT referrer_host, count(*) FILTER (traffic = 'human') AS human, count(*) FILTER (traffic = 'ai') AS ai,
       count(*) FILTER (traffic = 'bot') AS bot, human + ai AS total
{_FROM} GROUP BY referrer_host ORDER BY total DESC, referrer_host LIMIT {ROWS}
"""


class Raw:
    """A database that caches the footers of the files, and nothing else, between two queries."""

    name = "DuckDB over the raw rows"

    def __init__(self, data: Path) -> None:
        self._files = hits_files(data)
        self._database = duckdb.connect()
        self._database.execute("SET parquet_metadata_cache = true")

    def page(self, range: Range) -> tuple[float, Page]:
        took_ms, rows = self._timed(_PAGE, range)
        return took_ms, [(row[0], row[-1]) for row in rows]

    def series(self, range: Range) -> tuple[float, int]:
        took_ms, rows = self._timed(_SERIES, range)
        return took_ms, sum(row[-1] for row in rows)

    def breakdown(self, range: Range) -> float:
        """Return the time of the first page of referrer hosts, in ms."""
        return self._timed(_BREAKDOWN, range)[0]

    def close(self) -> None:
        self._database.close()

    def _timed(self, sql: str, range: Range) -> tuple[float, list[tuple[Any, ...]]]:
        values = {"files": self._files, "project": LARGE, "start": range.start, "end": range.end}
        began = time.perf_counter()
        rows = self._database.execute(sql, values).fetchall()
        return (time.perf_counter() - began) * 1000, rows
