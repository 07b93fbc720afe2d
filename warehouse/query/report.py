"""The page-view report: human and AI views of each path of a project, in a span of time.

Whole UTC days are counted from `daily_views`, the edges and the days uncounted there from `hits`, and the hot rows are
added, all of one snapshot.
What the files hold is kept until a table changes, the ranking until a hit arrives: the next page costs no query.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.errors import DataIncomplete
from warehouse.lake.delta_table import File
from warehouse.query import engine
from warehouse.query.result_cache import table_cache
from warehouse.query.snapshot import Reader, Snapshot
from warehouse.query.time_range import LAST, Cut, Span, cut

HOT_COLUMNS = ("project_id", "ts", "path", "traffic")
"""What the reader of these views must keep of hot rows."""
CACHE_BYTES = 128 * 1024 * 1024
"""Default size of the cache of rankings and counts, in each process."""

_COUNT_DAYS = """
SELECT path,
       coalesce(sum(views) FILTER (traffic = 'human'), 0)::BIGINT AS human,
       coalesce(sum(views) FILTER (traffic = 'ai'), 0)::BIGINT AS ai
FROM {files}
WHERE project_id = $project AND date >= $first AND date < $end AND traffic <> 'bot'
GROUP BY path
"""
_COUNT_EDGE = """
SELECT path, count(*) FILTER (traffic = 'human') AS human, count(*) FILTER (traffic = 'ai') AS ai
FROM {files}
WHERE project_id = $project AND ts >= $start AND ts < $end AND traffic <> 'bot'
GROUP BY path
"""
_RANK = """
SELECT path, sum(human)::BIGINT AS human, sum(ai)::BIGINT AS ai, sum(human + ai)::BIGINT AS total
FROM (
    SELECT path, human, ai FROM counted
    UNION ALL
    SELECT path, (traffic = 'human')::BIGINT, (traffic = 'ai')::BIGINT FROM hot
)
GROUP BY path ORDER BY total DESC, path
"""
_LATEST = "SELECT max(ts) AS latest FROM {files} WHERE project_id = $project"
_COUNTED = pa.schema([("path", pa.string()), ("human", pa.int64()), ("ai", pa.int64())])


@dataclass(frozen=True, slots=True)
class Ranking:
    """Every path with a human or AI view, most views first, then by path in byte order.

    `paths` has the columns path, human, ai and total; `human` and `ai` are its sums.
    """

    paths: pa.Table
    human: int
    ai: int


class Views:
    """Answers for one process; safe to call from several threads."""

    def __init__(self, reader: Reader, spill: Path, cache_bytes: int = CACHE_BYTES) -> None:
        self._reader = reader
        self._database = engine.connect(spill)
        self._cached = table_cache(cache_bytes)

    def ranking(self, project: str, start: datetime, end: datetime | None, now: datetime) -> Ranking:
        """Count the views with start <= ts < end; with no `end`, those before `now`.

        Every hit acknowledged before the call is counted, once.
        """
        snapshot = self._reader.take()
        span = Span(start, end or self._open_end(snapshot, project, now))
        paths = self._cached((project, span, snapshot.identity), lambda: self._rank(snapshot, project, span))
        return Ranking(paths, pc.sum(paths["human"]).as_py() or 0, pc.sum(paths["ai"]).as_py() or 0)

    def fault(self) -> str | None:
        """Return why no report can be given; None if one can."""
        try:
            self._reader.take()
        except DataIncomplete as error:
            return str(error)
        return None

    def close(self) -> None:
        self._database.close()
        self._reader.close()

    def _open_end(self, snapshot: Snapshot, project: str, now: datetime) -> datetime:
        """`now` if a hit lies after it (a sender's clock may be ahead), else the end of time: an answer to keep."""
        hot = snapshot.hits_hot.filter((pc.field("project_id") == project) & (pc.field("ts") >= now))
        today = _day(now)
        files = [file for file in snapshot.hits.files if file.partition >= today]
        latest = self._cached(
            (project, "latest", today, snapshot.hits.files_key),
            lambda: self._run(_LATEST, files, {"project": project}),
        )
        stored = latest["latest"].to_pylist() if files else []
        return now if hot.num_rows or any(ts and ts >= now for ts in stored) else LAST

    def _rank(self, snapshot: Snapshot, project: str, span: Span) -> pa.Table:
        parts = cut(span, snapshot.dirty_days)
        editions = (snapshot.daily_views.files_key, snapshot.hits.files_key if parts.edges else None)
        counted = self._cached((project, parts, "files", editions), lambda: self._count_files(snapshot, project, parts))
        with self._database.cursor() as cursor:
            cursor.register("counted", counted)
            cursor.register("hot", _hot(snapshot, project, parts))
            return cursor.sql(_RANK).to_arrow_table()

    def _count_files(self, snapshot: Snapshot, project: str, parts: Cut) -> pa.Table:
        counted = [_COUNTED.empty_table()]
        for days in parts.days:
            files = [f for f in snapshot.daily_views.files if _month(days.start) <= f.partition <= _month(days.end)]
            values = {"project": project, "first": days.start.date(), "end": days.end.date()}
            counted.append(self._run(_COUNT_DAYS, files, values))
        for edge in parts.edges:
            files = [f for f in snapshot.hits.files if _day(edge.start) <= f.partition <= _day(edge.end)]
            counted.append(self._run(_COUNT_EDGE, files, {"project": project, "start": edge.start, "end": edge.end}))
        return pa.concat_tables(counted)

    def _run(self, sql: str, files: list[File], values: dict[str, object]) -> pa.Table:
        if not files:
            return _COUNTED.empty_table()
        with self._database.cursor() as cursor:
            return cursor.sql(sql.format(files=engine.parquet(files)), params=values).to_arrow_table()


def _hot(snapshot: Snapshot, project: str, parts: Cut) -> pa.Table:
    """The hot rows of the project that the files do not count yet: those of whole days, and of the edges."""
    none = snapshot.hits_hot.select(["path", "traffic"]).slice(0, 0)
    days = [_of(snapshot.daily_views_hot, project, run) for run in parts.days]
    edges = [_of(snapshot.hits_hot, project, edge) for edge in parts.edges]
    return pa.concat_tables([none, *days, *edges])


def _of(rows: pa.Table, project: str, span: Span) -> pa.Table:
    counted = (pc.field("project_id") == project) & (pc.field("traffic") != "bot")
    within = (pc.field("ts") >= span.start) & (pc.field("ts") < span.end)
    return rows.filter(counted & within).select(["path", "traffic"])


def _day(instant: datetime) -> str:
    return instant.date().isoformat()


def _month(instant: datetime) -> str:
    return _day(instant)[:7]
