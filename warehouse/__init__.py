"""The stores: the lake of two Delta tables, the hot log before it, and the control database beside it.

In the order data passes:

- `folder`: the names of the files in a data folder.
- `schema`: the columns of the two tables and of a batch in the hot log.
- `migrations`: schema versions, and the numbered steps from one to the next.
- `transaction`: write transactions of SQLite, with one rollback policy.
- `control`: the control database and the projects in it.
- `lake`: the Delta tables: their files, lock, schema versions and staged files.
- `hotlog`: batches that wait for the lake.
- `integrity`: checks that the stores are complete and agree with each other.
- `query`: snapshots of the lake and the hot log, the views report, and the owner's SQL.
- `maintenance`: load, compact, erase, recount, reclassify and recover.
- `doctor`: every invariant, checked on the data as it is.
- `clock`: whether the time can be trusted, before anything is removed by its age.
- `disk`, `disk_space`: files that survive a power loss, and the free space that a load needs.
- `database_errors`: the causes of database errors: which of them pass by themselves.
- `plural`: numbers with their nouns in messages.
- `errors`: errors of this package, without HTTP.
"""

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def connect(data: str | PathLike[str] = "data") -> "duckdb.DuckDBPyConnection":
    """The views `hits`, `daily_views` and `agents` of a data folder as they stand now, hot rows included, to read.

    Whatever the service does meanwhile, every query sees this one moment; connect again for a new one. It holds for an
    hour at least: then files that the tables no longer name may be gone. Nothing is written into the folder's data, and
    no other file or address is opened: see docs/analysis.md.

    Raises:
        NoData: nothing of Readership is in the folder. Nothing is made there.
    """
    from warehouse.query import sql  # noqa: PLC0415 - DuckDB and Delta take 0.3 s to import, and most modules need neither

    return sql.connect(data)
