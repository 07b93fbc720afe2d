"""Where hits rest and how they are counted: the lake of two Delta tables, and the control database beside it.

In the order data passes:

- `folder`: what stands where in a data folder.
- `schema`: the columns of the two tables, and of a hot batch.
- `disk`: files and folders that survive a power loss.
- `delta_log`: the files of a Delta table's log: synced, checked, and set aside if broken.
- `migrations`: schema versions, and the numbered steps from one to the next; `table_schema`: those of the Delta tables.
- `lake`: the Delta tables: create, open, append with an offset, replace a partition.
- `lake_lock`: its lock, by which one process writes at a time.
- `stage`: many rows at once into Parquet files, before any commit.
- `batches`: the hot log's table of batches, rows or staged files, each with a rising id; `batches_steps`: its schema's
  changes.
- `clock`: whether the time can be trusted, before anything is removed by its age.
- `disk_space`: the free space that loading the hot log needs.
- `synced`, `durability`: how far each table is synced, recorded in the hot log and compared by readers and writers.
- `refusals`: deleted projects, of which the hot log stores nothing any more.
- `registry`: the lake's record of the hot logs and the control database beside it.
- `completeness`: whether these are missing or older than the lake; `recovery`: going on without them.
- `load`: hot batches into `hits` and `daily_views`, exactly once.
- `recount`: days of `daily_views` counted anew from `hits`, also those that a killed process left half done.
- `rebuild`: all of `daily_views` made anew from `hits`.
- `reclassify`, `moves`: stored hits under today's rules, and which of them changed places.
- `erase`: a project's rows, and those of old days, removed for good.
- `compact`: small files into large ones, closed days sorted, old files removed.
- `snapshot`: both tables and the hot rows at one moment.
- `query`: DuckDB over the files of a snapshot.
- `tables`: the SQL views `hits` and `daily_views` over a snapshot, and the lake's AI agents beside them.
- `agents_file`: those, as a file beside the tables; `lake_readme`: how to read the folder.
- `table_files`: the Parquet files of a table, for other tools.
- `sql`: the owner's own questions over them; `connect` is its connection for notebooks.
- `span`: a range of time, cut into days and edges.
- `views`: the page-view report of a project and a range.
- `doctor`: every invariant, checked on the data as it is.
- `control`: the control database; `control_steps`: its schema's changes.
- `database_errors`: the causes of its errors and of SQLite's: which pass by themselves.
- `projects`: the projects in it.
- `standing`: whether one is still there, for one who stores much for it.
- `plural`: numbers with their nouns in messages.
- `errors`: what can go wrong, without HTTP.
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
