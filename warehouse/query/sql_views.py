"""The SQL views `hits`, `daily_views`, `errors` and `agents` over a snapshot: rows in files, and hot rows."""

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from warehouse import daily_errors
from warehouse.lake.delta_table import DAILY_ERRORS_TABLE, HITS_TABLE, File, Spec
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.schema import AGENTS, DAILY_VIEWS, HOT

DAILY_VIEWS_SQL = (
    "SELECT project_id, strftime(date, '%Y-%m') AS month, date, path, traffic, agent, count(*) AS views "
    "FROM {hits} GROUP BY ALL"
)
"""The view `daily_views`. `{hits}` has the rows of `hits`."""
_HOT_HITS = "SELECT *, CAST(ts AT TIME ZONE 'UTC' AS DATE) AS date FROM hits_hot"


def create_temporary(cursor: duckdb.DuckDBPyConnection, hits: Snapshot, errors: Snapshot) -> None:
    """Create `hits`, `daily_views` and `errors` as temporary views of one cursor."""
    cursor.register("hits_hot", hits.hot.select(HOT.names))
    cursor.execute(f"CREATE OR REPLACE TEMP VIEW hits AS {_rows(HITS_TABLE, hits.files, _HOT_HITS)}")
    cursor.execute(f"CREATE OR REPLACE TEMP VIEW daily_views AS {DAILY_VIEWS_SQL.format(hits='hits')}")
    cursor.register("daily_errors_hot", daily_errors.count_errors(errors.hot))
    rows = _rows(DAILY_ERRORS_TABLE, errors.files, "FROM daily_errors_hot")
    cursor.execute(f"CREATE OR REPLACE TEMP VIEW errors AS {rows}")


def create(database: duckdb.DuckDBPyConnection, hits: Snapshot, errors: Snapshot, agents: pa.Table) -> None:
    """Create the four views, with their comments, for a database and all its cursors.

    The hot rows are copied into tables of the database, because a registered Arrow table belongs to one cursor. The
    copy takes 0.4 kB a row and can spill.
    """
    database.execute("CREATE SCHEMA copied")
    database.register("hits_hot", hits.hot.select(HOT.names))
    database.execute(f"CREATE TABLE copied.hot_hits AS {_HOT_HITS}")
    database.register("daily_errors_hot", daily_errors.count_errors(errors.hot))
    database.execute("CREATE TABLE copied.hot_daily_errors AS FROM daily_errors_hot")
    database.register("agents_read", agents)
    database.execute("CREATE TABLE copied.known_agents AS FROM agents_read")
    for name in ("hits_hot", "daily_errors_hot", "agents_read"):
        database.unregister(name)
    rows = _rows(HITS_TABLE, hits.files, "FROM copied.hot_hits")
    _create(database, "hits", HITS_TABLE.schema, rows, "One row a page view")
    meaning = "Page views by day, counted from hits: sum views, never count rows"
    _create(database, "daily_views", DAILY_VIEWS, DAILY_VIEWS_SQL.format(hits="hits"), meaning)
    rows = _rows(DAILY_ERRORS_TABLE, errors.files, "FROM copied.hot_daily_errors")
    meaning = "Requests of AI agents and bots that were answered with an error, by day: sum requests, never count rows"
    _create(database, "errors", DAILY_ERRORS_TABLE.schema, rows, meaning)
    _create(database, "agents", AGENTS, "FROM copied.known_agents", "The AI agents that are known, one row a pattern")


def _rows(spec: Spec, files: Sequence[File], hot: str) -> str:
    """Return the SELECT of the rows in files and the hot rows."""
    columns = ", ".join(spec.schema.names)
    stored = f"SELECT {columns} FROM {engine.rows(spec, files)} UNION ALL " if files else ""
    return f"{stored} SELECT {columns} FROM ({hot})"


def _create(database: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, rows: str, meaning: str) -> None:
    database.execute(f"CREATE VIEW {name} AS {rows}")
    database.execute(f"COMMENT ON VIEW {name} IS '{meaning}'")
    for field in schema:
        comment = field.metadata[b"comment"].decode().replace("'", "''")
        database.execute(f"COMMENT ON COLUMN {name}.{field.name} IS '{comment}'")
