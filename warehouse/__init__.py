"""The stores: the lake of three Delta tables, the hot log before it, and the control database beside it.

In the order data passes:

- `folder`: names of the files in a data folder.
- `schema`: columns of the three Delta tables, of a batch in the hot log, and of the file of AI agents.
- `encoding`: dictionary encoding of columns in memory.
- `daily_count`: the daily counts of page views and of errors, in SQL and in Arrow.
- `migrations`: schema versions, and the numbered steps from one to the next.
- `transaction`: write transactions of SQLite, with one rollback policy.
- `control`: the control database and the projects in it.
- `lake`: the Delta tables: their files, lock, schema versions and staged files.
- `hotlog`: accepted hits that wait for the lake, and hits that were loaded in the last ten minutes.
- `integrity`: checks that the stores are complete and agree with each other.
- `query`: snapshots of the lake and the hot log, and the owner's SQL.
- `rollups`: counts of each month in Parquet files, derived from `hits`.
- `report`: reports of page views: views of each path, breakdowns, series and the coverage of the sources.
- `blocks`: counts of page views by path in memory.
- `maintenance`: load, compact, erase, recount, reclassify and recover.
- `doctor`: check of every invariant on the stored data.
- `clock`: check that the system's clock can be trusted, before data is removed by its age.
- `disk`: writes that survive a power loss.
- `database_errors`: causes of database errors, and which of them are temporary.
- `plural`: numbers with their nouns in messages.
- `errors`: errors of this package, without HTTP.
"""

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def connect(data: str | PathLike[str] = "data") -> "duckdb.DuckDBPyConnection":
    """Return a connection to the SQL views (`warehouse.query.sql.VIEWS`) of a data folder, hot rows included.

    All queries of the connection see the data at the time of this call, for at least an hour; later, files that the
    tables no longer name may be deleted. Connect again for newer data. The connection changes no data, and opens no
    other file or network address: see docs/analysis.md.

    Raises:
        NoData: the folder has no data of Readership. Nothing is created.
    """
    from warehouse.query import sql  # noqa: PLC0415  # its libraries take 0.2 s to import, and most modules need none

    return sql.connect(data)
