"""Each statement in a file is one that both databases accept, and creates what it defines."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from api import app  # noqa: F401  # imports all modules with tables of the control database
from ingest.hotlog import deduplication, ledger_store
from tests.stores.postgresql import new_database
from warehouse.control import database
from warehouse.database import tables
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.statements import Statements
from warehouse.database.tables import Column
from warehouse.hotlog.connection import STATEMENTS

HOT = (STATEMENTS, deduplication.STATEMENTS, ledger_store.STATEMENTS)
FILE = """-- A comment of the file.

-- CREATE
-- A table; its comment has a semicolon.
CREATE TABLE IF NOT EXISTS things (
    id BIGSERIAL PRIMARY KEY,
    name VARCHAR(9) NOT NULL,
    seen DOUBLE PRECISION
);
CREATE TABLE IF NOT EXISTS pairs (a BYTEA, "b" INTEGER, PRIMARY KEY (a, "b")) WITHOUT ROWID

-- ADD
INSERT INTO things (name) VALUES (:name)

-- LOCK
SELECT name FROM things WHERE id IN ([:id#] * 2) FOR UPDATE OF things SKIP LOCKED

-- KIND sqlite
SELECT 'file'

-- KIND postgresql
SELECT 'server'::text
"""


@pytest.fixture
def things(tmp_path: Path) -> Statements:
    (tmp_path / "things.sql").write_text(FILE)
    return Statements(tmp_path / "things.sql")


def check(connection: sqlite3.Connection | PostgresqlConnection, things: Statements, kind: str) -> None:
    assert not things.is_complete(connection)
    for _ in range(2):
        things.create(connection)
    assert things.is_complete(connection)
    things.run_many(connection, "ADD", [{"name": "a"}, {"name": "b"}])
    assert things.changes_of_each(connection, "ADD", [{"name": "c"}]) == [1]
    assert {*things.rows_of_each(connection, "LOCK", [{"id0": 1, "id1": 2}, {"id0": 3, "id1": 3}])} == {
        ("a",),
        ("b",),
        ("c",),
    }
    assert things.run(connection, "KIND").fetchone() == (kind,)


def test_statements_run_in_a_file(things: Statements) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        check(connection, things, "file")


def test_statements_run_on_a_server(things: Statements, postgresql: str) -> None:
    with closing(PostgresqlConnection(new_database(postgresql))) as connection:
        check(connection, things, "server")


def test_definition_has_columns_keys_and_generated_ids(things: Statements) -> None:
    first, second = tables.of([things])
    assert first.columns == (
        Column("id", "BIGSERIAL", None),
        Column("name", "VARCHAR", 9),
        Column("seen", "DOUBLE PRECISION", None),
    )
    assert (first.key, first.generated_id, first.has_lasting_ids, first.has_rowid) == (("id",), "id", True, True)
    assert [column.name for column in second.columns] == ["a", "b"]
    assert (second.key, second.generated_id, second.has_lasting_ids, second.has_rowid) == (
        ("a", "b"),
        None,
        False,
        False,
    )


@pytest.mark.parametrize("files", [HOT, tuple(database.TABLES)], ids=["hot log", "control database"])
def test_defined_columns_are_those_that_sqlite_creates(files: tuple[Statements, ...]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for each in files:
            each.create(connection)
        for table in tables.of(files):
            created = connection.execute("SELECT name, pk > 0 FROM pragma_table_info(?)", (table.name,)).fetchall()
            assert [(column.name, int(column.name in table.key)) for column in table.columns] == created, table.name


@pytest.mark.parametrize("files", [HOT, tuple(database.TABLES)], ids=["hot log", "control database"])
def test_sqlite_prepares_each_statement(files: tuple[Statements, ...]) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for each in files:
            each.create(connection)
        connection.execute("CREATE TABLE unkeyed_logs (id, project_id, parent, first, bytes, digest, marks, is_cut)")
        for each in files:
            for text, _ in each._sqlite.values():
                if ";" not in text and not text.startswith(("CREATE", "DROP")):
                    connection.execute(f"EXPLAIN {text}", [None] * text.count("?"))


def test_hot_log_in_a_file_is_used_without_psycopg(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from ingest.hotlog import deduplication
from ingest.hotlog import ledger_store
from warehouse.hotlog import batches
hot = batches.connect(Path({str(tmp_path / "hot.sqlite")!r}))
deduplication.create(hot)
ledger_store.create(hot)
assert batches.backlog(hot).rows == 0
print("psycopg" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
