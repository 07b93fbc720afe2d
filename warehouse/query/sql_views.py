"""The SQL views of the tables, of daily views and of agents over a snapshot: rows in files, and hot rows."""

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from warehouse.lake.delta_table import File
from warehouse.lake.staging import table_rows
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.schema import AGENTS, DAILY_VIEWS
from warehouse.tables import DAILY_ERRORS_TABLE, TABLES, Spec

DAILY_VIEWS_SQL = (
    "SELECT project_id, strftime(date, '%Y-%m') AS month, date, path, traffic, agent, count(*) AS views "
    "FROM {hits} GROUP BY ALL"
)
"""The view `daily_views`. `{hits}` has the rows of `hits`."""
ERRORS_SQL = (
    "SELECT project_id, month, date, path, traffic, agent, status, errors AS requests, first_seen, last_seen "
    "FROM requests WHERE errors > 0"
)
"""The view `errors`."""
VIEWS = (*(spec.view for spec in TABLES), "errors", "daily_views", "agents")
Snapshots = Mapping[Spec, Snapshot]


def create_temporary(cursor: duckdb.DuckDBPyConnection, snapshots: Snapshots) -> None:
    """Create the views of the tables and `daily_views` as temporary views of one cursor."""
    for spec, snapshot in snapshots.items():
        cursor.register(f"{spec.name}_hot", _hot(spec, snapshot))
        rows = _rows(spec, snapshot.files, f"{spec.name}_hot")
        cursor.execute(f"CREATE OR REPLACE TEMP VIEW {spec.view} AS {rows}")
    cursor.execute(f"CREATE OR REPLACE TEMP VIEW errors AS {ERRORS_SQL}")
    cursor.execute(f"CREATE OR REPLACE TEMP VIEW daily_views AS {DAILY_VIEWS_SQL.format(hits='hits')}")


def create(database: duckdb.DuckDBPyConnection, snapshots: Snapshots, agents: pa.Table) -> None:
    """Create the views, with their comments, for a database and all its cursors.

    The hot rows are copied into tables of the database, because a registered Arrow table belongs to one cursor. The
    copy takes 0.4 kB a row and can spill.
    """
    database.execute("CREATE SCHEMA copied")
    for spec, snapshot in snapshots.items():
        _copy(database, f"hot_{spec.name}", _hot(spec, snapshot))
        rows = _rows(spec, snapshot.files, f"copied.hot_{spec.name}")
        _create(database, spec.view, spec.schema, rows, spec.meaning)
    _create(database, "errors", DAILY_ERRORS_TABLE.schema, ERRORS_SQL, DAILY_ERRORS_TABLE.meaning)
    meaning = "Page views by day, counted from hits: sum views, never count rows"
    _create(database, "daily_views", DAILY_VIEWS, DAILY_VIEWS_SQL.format(hits="hits"), meaning)
    _copy(database, "known_agents", agents)
    _create(database, "agents", AGENTS, "FROM copied.known_agents", "The AI agents that are known, one row a pattern")


def _copy(database: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    database.register("read", rows)
    database.execute(f"CREATE TABLE copied.{name} AS FROM read")
    database.unregister("read")


def _hot(spec: Spec, snapshot: Snapshot) -> pa.Table:
    """Return the hot rows of a table with its columns. Page views and events are not sorted."""
    if spec.sums:
        return table_rows(spec, snapshot.hot)
    return snapshot.hot.append_column("date", snapshot.hot["ts"].cast(pa.date32())).select(spec.schema.names)


def _rows(spec: Spec, files: Sequence[File], hot: str) -> str:
    """Return the SELECT of the rows in files and the hot rows, which a table has."""
    columns = ", ".join(spec.schema.names)
    stored = f"SELECT {columns} FROM {engine.rows(spec, files)} UNION ALL " if files else ""
    return f"{stored} SELECT {columns} FROM {hot}"


def _create(database: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, rows: str, meaning: str) -> None:
    database.execute(f"CREATE VIEW {name} AS {rows}")
    database.execute(f"COMMENT ON VIEW {name} IS '{meaning}'")
    for field in schema:
        comment = field.metadata[b"comment"].decode().replace("'", "''")
        database.execute(f"COMMENT ON COLUMN {name}.{field.name} IS '{comment}'")
