"""Days of `daily_views` counted anew from `hits`.

Two Delta tables cannot commit at one moment. Who is about to change rows that `hits` already holds therefore notes
their days in the hot log first, and strikes them out once `daily_views` has followed. Days that a killed process left
noted are counted by the next load; until then a reader counts them from `hits` itself. All this is for one who holds
the lake, with both tables at one offset (see `load.bring_up`): a batch that only one of them held would be counted
twice, or never.
"""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from deltalake.exceptions import CommitFailedError

from warehouse.errors import LakeBusy
from warehouse.hotlog import dirty_days
from warehouse.lake import delta_table
from warehouse.lake.delta_table import DAILY_VIEWS_TABLE, HITS_TABLE
from warehouse.schema import DAILY_VIEWS, DAILY_VIEWS_KEY

if TYPE_CHECKING:
    import duckdb

ATTEMPTS = 5
"""Of a commit in whose way another node's appends come."""
SPILL = ".spill"
"""The folder in the lake for what one who holds it sorts on the disk."""

OnStep = Callable[[str], None]
Done = TypeVar("Done")

_COUNTED = (
    "SELECT project_id, strftime(date, '%Y-%m') AS month, date, path, traffic, agent, count(*) AS views "
    f"FROM {{files}} GROUP BY {', '.join(DAILY_VIEWS_KEY)}"
)
_KEPT = f"SELECT {', '.join(DAILY_VIEWS.names)} FROM {{files}} WHERE date NOT IN (SELECT unnest($days::DATE[]))"


def finish(hot: sqlite3.Connection, root: Path) -> None:
    """Count the days that are noted. No commit where there are none.

    Raises:
        LakeBusy: see `retried`.
    """
    days = dirty_days.list_dirty(hot)
    if days:
        from warehouse.query import engine  # noqa: PLC0415  # DuckDB takes 0.1 s to load, and next to no load counts days anew

        shutil.rmtree(root / SPILL, ignore_errors=True)  # what a killed holder of the lake left there
        with closing(engine.connect(root / SPILL)) as database:
            count(root, database, days)
        dirty_days.clear_dirty(hot, days)


def count(
    root: Path, database: "duckdb.DuckDBPyConnection", days: Sequence[str], on_step: OnStep = lambda step: None
) -> None:
    """Replace the rows of the days by what `hits` says; the other rows of their months are copied as they are.

    Raises:
        LakeBusy: see `retried`.
    """
    for month, of_month in groupby(sorted(days), key=lambda day: day[:7]):
        retried(partial(_replace, root, database, month, frozenset(of_month), on_step))


def count_month(root: Path, database: "duckdb.DuckDBPyConnection", month: str, on_step: OnStep) -> None:
    """Replace all rows of the month by what `hits` says, without reading those that are there."""
    retried(partial(_replace, root, database, month, None, on_step))


def retried(commit: Callable[[], Done]) -> Done:
    """Do again what an append of another node came in the way of.

    Raises:
        LakeBusy: it did ATTEMPTS times.
    """
    for _ in range(ATTEMPTS):
        try:
            return commit()
        except CommitFailedError:
            continue
    raise LakeBusy(f"other nodes wrote into the same days {ATTEMPTS} times over; try again later")


def _replace(
    root: Path, database: "duckdb.DuckDBPyConnection", month: str, days: frozenset[str] | None, on_step: OnStep
) -> None:
    """`days` None are all of the month."""
    from warehouse.query import engine  # noqa: PLC0415  # the same

    daily_views = delta_table.open_table(root, DAILY_VIEWS_TABLE)
    kept = () if days is None else delta_table.list_files(daily_views, DAILY_VIEWS_TABLE, month)
    hits = [
        file
        for file in delta_table.list_files(delta_table.open_table(root, HITS_TABLE), HITS_TABLE)
        if (file.partition[:7] == month if days is None else file.partition in days)
    ]
    selects = [
        sql.format(files=engine.parquet(files)) for sql, files in ((_KEPT, kept), (_COUNTED, hits)) if files
    ] or [_nothing()]
    sql = f"{' UNION ALL '.join(selects)} ORDER BY {', '.join(DAILY_VIEWS_TABLE.order)}"
    with database.cursor() as cursor:
        rows = cursor.sql(sql, params={"days": sorted(days or ())} if kept else {}).to_arrow_reader()
        on_step("before commit of daily_views")
        delta_table.replace_partition(daily_views, DAILY_VIEWS_TABLE, month, rows.cast(DAILY_VIEWS))


def _nothing() -> str:
    kinds = {"date": "DATE", "views": "BIGINT"}
    columns = (f"NULL::{kinds.get(name, 'VARCHAR')} AS {name}" for name in DAILY_VIEWS.names)
    return f"SELECT {', '.join(columns)} WHERE false"
