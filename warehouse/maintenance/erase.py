"""Delete the rows of a project, some of its days or paths, or the days before the retention.

All tables lose the rows one month at a time, and loads run in between. `compact.vacuum` removes the files
`delta_table.GRACE_H` hours later. The hot log loses the rows at once, and the moments of reports that were computed
before can no longer be read.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import groupby
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.hotlog import retention, wal
from warehouse.hotlog.connection import HotConnection
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, rewriting, roots, row_groups
from warehouse.lake.lock import pause_for_waiters
from warehouse.lake.roots import Root
from warehouse.maintenance.catch_up import OnPoint, catch_up
from warehouse.maintenance.load import load
from warehouse.query import engine
from warehouse.query.engine import Share
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE, TABLES, Spec

_COUNT = "SELECT date, traffic, {sum}::BIGINT FROM {files} WHERE {where} GROUP BY ALL HAVING {sum} > 0"
_SUMS = {HITS_TABLE: "count(*)", REQUESTS_TABLE: "sum(errors)"}
"""Numbers of the rows that people know, by day and traffic. The other tables lose the rows of the same days."""
POINTS = (*(f"before delete from {spec.name}" for spec in TABLES), "after month")


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rows of a project from the UTC day `first` to the day before `end`, with `path`. None is no limit.

    A `path` that ends in `*` is the prefix of paths, and one between two `*` a part of them.
    """

    project: str
    first: date | None = None
    end: date | None = None
    path: str | None = None

    @property
    def where(self) -> str:
        """Return the SQL condition for DuckDB and delta-rs, which binds no values."""
        conditions = [f"project_id = {_quoted(self.project)}"]
        conditions += [f"date >= '{self.first}'"] if self.first else []
        conditions += [f"date < '{self.end}'"] if self.end else []
        if self.path is not None:
            is_part, is_prefix = self.path.startswith("*"), self.path.endswith("*")
            path = _quoted(self.path[is_part:].removesuffix("*"))
            test = f"strpos(path, {path}) > 0" if is_part else f"starts_with(path, {path})"
            conditions.append(test if is_prefix else f"path = {path}")
        return " AND ".join(conditions)


class _Erased(NamedTuple):
    """Tables, days, and SQL condition of the rows that are deleted. The functions: see `erase_hits`."""

    specs: Sequence[Spec]
    days: Collection[str]
    where: str
    on_point: OnPoint
    require_same: Callable[[], object] = lambda: None


class DayCounts(NamedTuple):
    """Numbers of the page views and of the errors of a day and traffic."""

    day: date
    traffic: str
    hits: int
    errors: int


def count(hot: HotConnection, root: Root, share: Share, chosen: Chosen, wait_s: float) -> list[DayCounts]:
    """Return the numbers of rows that `erase_hits` would delete. Loads the hot log first. Raises LakeBusy."""
    load(hot, root, wait_s)
    hits, errors = _counts(root, share, chosen)
    return [DayCounts(*key, hits.get(key, 0), errors.get(key, 0)) for key in sorted({*hits, *errors})]


def erase_hits(
    hot: HotConnection,
    root: Root,
    share: Share,
    chosen: Chosen,
    wait_s: float,
    on_point: OnPoint = lambda point: None,
    require_same: Callable[[], object] = lambda: None,
) -> int:
    """Delete rows, those in the hot log included, and return the number of page views among them.

    Without days and a path, all rows of the project are deleted: the caller makes sure that nothing is posted to the
    project meanwhile. `require_same` raises an error if a new project may have the id. It is called before each commit,
    after the rows to delete have been chosen, so that rows of the new project stay.

    An interrupted call can be repeated.

    Raises:
        LakeBusy: see `durability.durable_writes` and `rewriting.retry_commit`.
    """
    load(hot, root, wait_s)
    days = {f"{day}" for counts in _counts(root, share, chosen) for day, _ in counts}
    specs = [spec for spec in TABLES if chosen.path is None or "path" in spec.schema.names]
    first, end = chosen.first or date.min, chosen.end or date.max
    for spec in specs:
        if spec is not HITS_TABLE:
            days |= {day for day in _days(root, spec) if f"{first}" <= day < f"{end}"}
    return _erase(hot, root, _Erased(specs, days, chosen.where, on_point, require_same), wait_s)


def erase_before(
    hot: HotConnection, root: Root, today: date, days: int, wait_s: float, on_point: OnPoint = lambda point: None
) -> int:
    """Delete the days that ended more than `days` days before `today`; return their number of hits. Raises LakeBusy."""
    first_retained = (today - timedelta(days=days)).isoformat()
    load(hot, root, wait_s)
    old = {day for spec in TABLES for day in _days(root, spec, first_retained)}
    return _erase(hot, root, _Erased(TABLES, old, f"date < '{first_retained}'", on_point), wait_s) if old else 0


def first_trusted_s(root: Root, share: Share, now_s: float) -> float:
    """Return the newest trusted time of a folder that has no `clock` record yet, in seconds since 1970.

    It is the time of the last vacuum; without one, the time of the newest hit; without a hit, `now_s`.
    """
    last_vacuum = root.local / delta_table.LAST_VACUUM
    if last_vacuum.exists():
        return last_vacuum.stat().st_mtime
    files = delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
    if not files:
        return now_s
    with share.database() as database:
        ((newest_s,),) = database.execute(f"SELECT epoch(max(received_at)) FROM {engine.parquet(files)}").fetchall()
    return float(newest_s)


def _counts(root: Root, share: Share, chosen: Chosen) -> list[dict[tuple[date, str], int]]:
    """Return the sums of the chosen rows of each table by day and traffic."""
    counts = []
    with share.database() as database:
        for spec, number in _SUMS.items():
            files = delta_table.list_files(delta_table.open_table(root, spec), spec)
            relation = engine.parquet(files) if files else engine.no_rows(spec)
            sql = _COUNT.format(sum=number, files=relation, where=chosen.where)
            counts.append({(day, traffic): number for day, traffic, number in database.execute(sql).fetchall()})
    return counts


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _days(root: Root, spec: Spec, end: str = "9") -> set[str]:
    """Return the days of a table before `end`. A day may have errors and no page view."""
    files = delta_table.list_files(delta_table.open_table(root, spec), spec)
    paths = {file.path: file.partition for file in files if file.partition < end}
    if spec.partition == "date":
        return set(paths.values())
    read = (pq.ParquetFile(roots.at(path).open_parquet()).read(["date"])["date"] for path in paths)
    return {f"{day}" for dates in read for day in pc.unique(dates).to_pylist() if f"{day}" < end}


def _erase(hot: HotConnection, root: Root, erased: _Erased, wait_s: float) -> int:
    removed = 0
    for _, days_of_month in groupby(sorted(erased.days), key=lambda day: day[:7]):
        with durable_writes(hot, root, wait_s):
            catch_up(hot, root)
            removed += _erase_month(root, erased, list(days_of_month))
        pause_for_waiters()
    retention.delete_loaded(hot, delta_table.open_table(root, HITS_TABLE).version())
    wal.empty(hot)
    return removed


def _erase_month(root: Root, erased: _Erased, days: Sequence[str]) -> int:
    month, removed = days[0][:7], 0
    within = f"{erased.where} AND date >= '{days[0]}' AND date <= '{days[-1]}'"
    for spec in erased.specs:
        erased.on_point(f"before delete from {spec.name}")
        rows = within if spec.partition == "date" else f"{within} AND month = '{month}'"
        deleted = rewriting.retry_commit(partial(_delete, root, spec, rows, month, erased.require_same))
        removed += deleted if spec is HITS_TABLE else 0
    erased.on_point("after month")
    return removed


def _delete(root: Root, spec: Spec, where: str, month: str, require_same: Callable[[], object]) -> int:
    """Delete rows of a month, of the newest version of a table.

    Rows of a later version stay, or end the commit with an error.
    """
    table = delta_table.open_table(root, spec)
    files = (file.path for file in delta_table.list_files(table, spec) if file.partition[:7] == month)
    rows_max = row_groups.rows_for(files)
    require_same()
    return delta_table.delete(table, where, rows_max)
