"""End of a time range that a request leaves open: `now` if the project has hits of a later time, from a fast clock."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks import hits_files
from warehouse.lake.delta_table import File
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import LAST

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def find(
    database: duckdb.DuckDBPyConnection, cached: ResultCache, snapshot: HitsSnapshot, project: str, now: datetime
) -> datetime:
    """Return `now` if the project has a hit at or after `now`; else LAST, a constant with which results are cached."""
    today = now.date().isoformat()
    files = [file for file in snapshot.files if file.partition >= today]
    latest = _latest_us(database, cached, files, project)
    is_ahead = latest is not None and _EPOCH + latest * _MICROSECOND >= now
    return now if is_ahead or _is_hot_ahead(snapshot.hot, project, now) else LAST


def _latest_us(
    database: duckdb.DuckDBPyConnection, cached: ResultCache, files: Sequence[File], project: str
) -> int | None:
    """Return the time of the last hit of a project in files. Only files that are not in the cache are read."""
    known = {file.path: cached.get(("latest", project, file.path)) for file in files}
    unknown = [file for file in files if known[file.path] is None]
    if unknown:
        for path, latest in hits_files.latest(database, unknown, project).items():
            known[path] = latest
            cached.put(("latest", project, path), latest)
    return max((latest.time_us for latest in known.values() if latest.time_us is not None), default=None)


def _is_hot_ahead(hot: pa.Table, project: str, now: datetime) -> bool:
    latest = pc.max(hot["ts"]).as_py()
    if latest is None or latest < now:
        return False
    return bool(hot.filter((pc.field("project_id") == project) & (pc.field("ts") >= now)).num_rows)
