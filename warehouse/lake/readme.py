"""README in the lake's folder, for people who find the Parquet files before the documentation."""

from warehouse.lake import roots
from warehouse.lake.roots import Root

README_FILE = "README.md"
"""Name of the file in the lake's folder."""
TEXT = """\
# The lake of Readership

`hits` (one row per page view), `events` (one row per event), `asset_loads` (styles, scripts, fonts and images that
visitors loaded; add up `loads`) and `requests` (all requests of access logs and servers; add up `requests`, and
`errors` by path) are Delta Lake tables. `agents.parquet` lists the AI agents that Readership knows. `rollups` has
counts of `hits` by month for the reports. Readership overwrites changes of this file.

## Read it

- Never read all Parquet files of a folder, as in `read_parquet('hits/**/*.parquet')`. After a compaction the folder
  contains the replaced files too, for one to two hours: their rows would count twice.
- `readership files hits` prints the files that are the table now, `readership files hits --sql` the same as
  `read_parquet([...])` for DuckDB. The list is valid for an hour.
- Tools that read Delta Lake (`deltalake`, Polars, Spark, DuckDB's extension `delta`) leave replaced files out by
  themselves.
- The hits of the last minute are not here but in the hot log: `hot.sqlite` in the data folder, or PostgreSQL.
  `readership flush` loads them; `readership sql` reads both.

## Never

- Never change, add, move or delete a file below this folder, and never let another program optimize, vacuum or write
  the tables. `readership compact`, `reclassify`, `rebuild` and `project delete` do what is needed.
- Never restore this folder without the hot log of the same moment: hits would be lost or count twice.
"""


def write_readme(root: Root) -> None:
    """Write the README if it differs from the file. The caller has the lake's `write_lock`."""
    roots.write_changed(root / README_FILE, TEXT.encode())
