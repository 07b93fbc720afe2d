"""The stores: the lake of Delta tables, the hot log before it, and the control database beside it.

In the order data passes:

- `folder`: names of the files in a data folder, and the record of a move of its stores.
- `schema`: columns of the Delta tables and SQL views, of a batch in the hot log, and of the file of AI agents.
- `encoding`: dictionary encoding of columns in memory.
- `tables`: the tables of the lake, each declared once.
- `migrations`: schema versions, and the numbered migrations from one to the next.
- `database`: connections to SQLite and PostgreSQL, and their statements in `.sql` files.
- `control`: the control database and the projects in it.
- `columns`: what reports group and filter by, and source policies as sets of sources, each declared once.
- `requests`: which waiting hits are page views and which are errors, and how the requests of servers are counted.
- `lake`: the Delta tables: their files, lock, schema versions and staged files.
- `hotlog`: accepted hits that wait for the lake, and hits that were loaded in the last ten minutes.
- `integrity`: checks that the stores are complete and agree with each other.
- `query`: snapshots of the lake and the hot log, and the owner's SQL.
- `batch`: one function for many items, in this process, in child processes or in a Ray cluster.
- `rollups`: counts of each month in Parquet files, derived from `hits`.
- `report`: reports of page views: views of each path, breakdowns, series and the coverage of the sources.
- `maintenance`: load, compact, erase, reclassify and recover.
- `move`: copies of the stores of a data folder in PostgreSQL and an object store.
- `doctor`: check of every invariant on the stored data.
- `clock`: check that the system's clock can be trusted, before data is removed by its age.
- `disk`: writes that survive a power loss.
- `database_errors`: causes of database errors, and which of them are temporary.
- `plural`: numbers with their nouns in messages.
- `errors`: errors of this package, without HTTP.
"""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def connect(
    data: str | PathLike[str] = "data", lake: str | None = None, database_url: str | None = None
) -> "duckdb.DuckDBPyConnection":
    """Return a connection to the SQL views (`warehouse.query.sql.VIEWS`) of a data folder, hot rows included.

    All queries of the connection see the data at the time of this call, for at least an hour; later, files that the
    tables no longer name may be deleted. Connect again for newer data. The connection changes no data, and opens no
    other file or network address: see docs/analysis.md.

    `lake` is the value of READERSHIP_LAKE, if the lake is in an object store, and `database_url` that of
    READERSHIP_DATABASE_URL, if the hot log is in PostgreSQL.

    Raises:
        NoData: the folder has no data of Readership. Nothing is created.
        DataMoved: a store of the folder was moved, and `lake` or `database_url` does not name the new place.
        InvalidRoot: see `roots.open_remote`.
    """
    from warehouse.folder import LAKE, refuse_moved  # noqa: PLC0415  # see the next lines
    from warehouse.hotlog.connection import server_of  # noqa: PLC0415  # the same
    from warehouse.lake import roots  # noqa: PLC0415  # the same
    from warehouse.query import sql  # noqa: PLC0415  # its libraries take 0.2 s to import, and most modules need none

    refuse_moved(Path(data), has_database=database_url is not None, has_lake=lake is not None)
    root = None if lake is None else roots.open_remote(lake, Path(data) / LAKE)
    return sql.connect(data, root, None if database_url is None else server_of(database_url))
