"""The views report: human and AI views of each path of a project in a time range.

Whole UTC days are counted from `daily_views`, partial and dirty days from `hits`. The hot rows of the same snapshot are
added. The counts of the files are cached until a table changes, and the ranking until a hit arrives: the next page of a
report runs no query.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.errors import DataIncomplete
from warehouse.lake.delta_table import File
from warehouse.query import engine
from warehouse.query.result_cache import ResultCache
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.query.time_range import LAST, SplitRange, TimeRange, split

HOT_COLUMNS = ("project_id", "ts", "path", "traffic")
"""Columns of hot rows that a report reads: the least that its SnapshotReader needs."""
CACHE_BYTES = 128 * 1024 * 1024
"""Default size of the cache of rankings and counts in each process, in bytes."""

_COUNT_WHOLE_DAYS = """
SELECT path,
       coalesce(sum(views) FILTER (traffic = 'human'), 0)::BIGINT AS human,
       coalesce(sum(views) FILTER (traffic = 'ai'), 0)::BIGINT AS ai
FROM {files}
WHERE project_id = $project AND date >= $first AND date < $end AND traffic <> 'bot'
GROUP BY path
"""
_COUNT_PARTIAL_DAYS = """
SELECT path, count(*) FILTER (traffic = 'human') AS human, count(*) FILTER (traffic = 'ai') AS ai
FROM {files}
WHERE project_id = $project AND ts >= $start AND ts < $end AND traffic <> 'bot'
GROUP BY path
"""
_RANK = """
SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(human + ai)::BIGINT AS total
FROM (
    SELECT path, human, ai FROM counts
    UNION ALL
    SELECT path, (traffic = 'human')::BIGINT, (traffic = 'ai')::BIGINT FROM hot
)
GROUP BY path ORDER BY total DESC, path
"""
_LATEST = "SELECT max(ts) AS latest FROM {files} WHERE project_id = $project"
_COUNTS = pa.schema([("path", pa.string()), ("human", pa.int64()), ("ai", pa.int64())])


@dataclass(frozen=True, slots=True)
class Ranking:
    """All paths with a human or AI view, most views first, then by path in byte order.

    `paths` has the columns path, human, ai and total. `human` and `ai` are the sums of their columns.
    """

    paths: pa.Table
    human: int
    ai: int


class Reports:
    """Views reports of one process, with their cache. Safe to call from several threads."""

    def __init__(self, reader: SnapshotReader, spill: Path, cache_bytes: int = CACHE_BYTES) -> None:
        self._reader = reader
        self._database = engine.connect(spill)
        self._cached = ResultCache(cache_bytes)

    def ranking(self, project: str, start: datetime, end: datetime | None, now: datetime) -> Ranking:
        """Count the views with start <= ts < end; without an `end`, those before `now`.

        Each hit acknowledged before the call is counted once.
        """
        snapshot = self._reader.take()
        time_range = TimeRange(start, end or self._open_end(snapshot, project, now))
        paths = self._cached(
            (project, time_range, snapshot.cache_key), lambda: self._rank(snapshot, project, time_range)
        )
        return Ranking(paths, pc.sum(paths["human"]).as_py() or 0, pc.sum(paths["ai"]).as_py() or 0)

    def fault(self) -> str | None:
        """Return why reports cannot be computed; None if they can."""
        try:
            self._reader.take()
        except DataIncomplete as error:
            return str(error)
        return None

    def close(self) -> None:
        self._database.close()
        self._reader.close()

    def _open_end(self, snapshot: Snapshot, project: str, now: datetime) -> datetime:
        """Return the end of a range without one: LAST, or `now` if the project has a hit at or after `now`.

        Such a hit comes from a sender whose clock is ahead. The constant LAST lets later calls use the cached ranking.
        """
        hot = snapshot.hits_hot.filter((pc.field("project_id") == project) & (pc.field("ts") >= now))
        today = _day(now)
        files = [file for file in snapshot.hits.files if file.partition >= today]
        latest = self._cached(
            (project, "latest", today, snapshot.hits.files_key),
            lambda: self._run(_LATEST, files, {"project": project}),
        )
        stored = latest["latest"].to_pylist() if files else []
        return now if hot.num_rows or any(ts and ts >= now for ts in stored) else LAST

    def _rank(self, snapshot: Snapshot, project: str, time_range: TimeRange) -> pa.Table:
        parts = split(time_range, snapshot.dirty_days)
        files_keys = (snapshot.daily_views.files_key, snapshot.hits.files_key if parts.partial_days else None)
        counts = self._cached(
            (project, parts, "files", files_keys), lambda: self._count_files(snapshot, project, parts)
        )
        with self._database.cursor() as cursor:
            cursor.register("counts", counts)
            cursor.register("hot", _hot_rows(snapshot, project, parts))
            return cursor.sql(_RANK).to_arrow_table()

    def _count_files(self, snapshot: Snapshot, project: str, parts: SplitRange) -> pa.Table:
        counts = [_COUNTS.empty_table()]
        for days in parts.whole_days:
            files = [f for f in snapshot.daily_views.files if _month(days.start) <= f.partition <= _month(days.end)]
            values = {"project": project, "first": days.start.date(), "end": days.end.date()}
            counts.append(self._run(_COUNT_WHOLE_DAYS, files, values))
        for part in parts.partial_days:
            files = [f for f in snapshot.hits.files if _day(part.start) <= f.partition <= _day(part.end)]
            instants = {"project": project, "start": part.start, "end": part.end}
            counts.append(self._run(_COUNT_PARTIAL_DAYS, files, instants))
        return pa.concat_tables(counts)

    def _run(self, sql: str, files: list[File], values: dict[str, object]) -> pa.Table:
        if not files:
            return _COUNTS.empty_table()
        with self._database.cursor() as cursor:
            return cursor.sql(sql.format(files=engine.parquet(files)), params=values).to_arrow_table()


def _hot_rows(snapshot: Snapshot, project: str, parts: SplitRange) -> pa.Table:
    """Return the hot rows that the table of each part lacks: `daily_views` for whole days, `hits` for partial days."""
    no_rows = snapshot.hits_hot.select(["path", "traffic"]).slice(0, 0)
    whole = [_within(snapshot.daily_views_hot, project, days) for days in parts.whole_days]
    partial = [_within(snapshot.hits_hot, project, part) for part in parts.partial_days]
    return pa.concat_tables([no_rows, *whole, *partial])


def _within(rows: pa.Table, project: str, time_range: TimeRange) -> pa.Table:
    is_counted = (pc.field("project_id") == project) & (pc.field("traffic") != "bot")
    is_within = (pc.field("ts") >= time_range.start) & (pc.field("ts") < time_range.end)
    return rows.filter(is_counted & is_within).select(["path", "traffic"])


def _day(instant: datetime) -> str:
    return instant.date().isoformat()


def _month(instant: datetime) -> str:
    return _day(instant)[:7]
