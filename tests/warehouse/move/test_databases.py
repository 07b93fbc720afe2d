"""Each table of both databases is copied with all rows, and generated ids continue above those ever used."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from agent.jobs import tables as jobs
from api import app  # noqa: F401  # imports all modules that define tables of the control database
from api.accounts import attempts
from ingest.hotlog import deduplication, ledger_store
from tests.stores import sql
from tests.stores.postgresql import new_database
from warehouse.control import database
from warehouse.database import tables as definitions
from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.database.tables import Column, Table
from warehouse.errors import MoveRefused
from warehouse.folder import sqlite_url
from warehouse.hotlog import batches, postgresql, refusals
from warehouse.hotlog.connection import Server, server_of
from warehouse.move import databases, tables
from warehouse.move.databases import Sources
from warehouse.schema import HOT

ROWS = 3
HIGHEST = ROWS + 9
"""Highest id in a table."""
LAST = ("batches", "job_log", "refusals")
"""Tables from which the row with the highest id is deleted."""
ONE_ROW = ("node", "schema_version")
"""Tables that have a row when they are created, and no other one."""
MORE = (deduplication.STATEMENTS, ledger_store.STATEMENTS)


Rows = list[tuple[Any, ...]]


SAMPLES = {
    "BOOLEAN": lambda number: number % 2 == 0,
    "DATE": lambda number: f"2026-01-0{1 + number}",
    "JSON": lambda number: json.dumps({"é\\n\t": [number, None, True]}),
    "BYTEA": lambda number: bytes((number, 0, 255, 92, 10)),
    "DOUBLE PRECISION": lambda number: number + 0.1,
}
REFERENCES = {"project_id", "job_id", "user_id"}


def value(column: Column, number: int, *, is_null: bool) -> Any:
    """Return a value of the column's type, which differs from row to row."""
    if is_null and column.name not in REFERENCES:
        return None
    if column.name in REFERENCES or column.type not in {*SAMPLES, "BIGSERIAL", "SERIAL", "BIGINT", "INTEGER"}:
        return f'{number}\\."\t'
    return SAMPLES[column.type](number) if column.type in SAMPLES else number + 10


def fill(path: Path, tables: list[Table]) -> dict[str, Rows]:
    """Add rows to each table, delete those of LAST, and return the rows of each table."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in tables:
            if table.name in ONE_ROW:
                continue
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            required = dict(connection.execute('SELECT name, "notnull" FROM pragma_table_info(?)', (table.name,)))
            for number in range(ROWS):
                values = [
                    value(column, number, is_null=number == 0 and not required[column.name]) for column in table.columns
                ]
                marks = ", ".join("?" * len(values))
                connection.execute(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", values)
            if table.name in LAST:
                connection.execute(f"DELETE FROM {table.name} WHERE id = ?", (HIGHEST,))
        return {table.name: rows(connection, table) for table in tables}


def rows(connection: sqlite3.Connection | PostgresqlConnection, table: Table) -> Rows:
    """Return the rows of a table, with dates and JSON as texts."""
    names = ", ".join(
        f'CAST("{column.name}" AS TEXT)' if column.type in {"DATE", "JSON"} else f'"{column.name}"'
        for column in table.columns
    )
    return sorted((tuple(row) for row in connection.execute(f"SELECT {names} FROM {table.name}")), key=repr)


@dataclass(frozen=True)
class Filled:
    """Files of a hot log and a control database, with rows in each table."""

    hot: Path
    control: Path
    hot_rows: dict[str, Rows]
    control_rows: dict[str, Rows]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    folder = tmp_path_factory.mktemp("files")
    hot, control = folder / "hot.sqlite", folder / "control.sqlite"
    with closing(batches.connect_file(hot)) as connection:
        for each in MORE:
            each.create(connection)
        tables = Sources(connection, None, MORE).hot_tables()
    database.connect(sqlite_url(control)).close()
    return Filled(hot, control, fill(hot, tables), fill(control, definitions.of(database.TABLES)))


@pytest.fixture
def sources(filled: Filled) -> Iterator[Sources]:
    with databases.opened(filled.hot) as hot, databases.opened(filled.control) as control:
        yield Sources(hot, control, MORE)


@pytest.fixture
def url(postgresql: str) -> str:
    return new_database(postgresql)


def server(url: str) -> Server:
    hot_log = server_of(url)
    assert hot_log is not None
    return hot_log


def tables_of(connection: sqlite3.Connection) -> set[str]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in names if not name.startswith("sqlite_")}


def copy(url: str, sources: Sources) -> dict[str, int]:
    return databases.copy(server(url), sources, "public", lambda count: None, lambda: None)


def require(check: Callable[[sqlite3.Connection, str, Sequence[Table]], None], sources: Sources) -> None:
    for each in sources.files():
        check(*each)


def test_each_row_of_each_table_is_copied(filled: Filled, sources: Sources, url: str) -> None:
    assert sources.control is not None
    require(tables.require_known, sources)
    databases.rehearse(server(url), sources, "public")
    counts = copy(url, sources)
    assert counts.keys() == tables_of(sources.hot) | tables_of(sources.control)
    assert sum(counts.values()) > 2 * len(counts)
    with closing(postgresql.connect(server(url), create=False)) as hot:
        assert {table.name: rows(hot, table) for table in sources.hot_tables()} == filled.hot_rows
    with closing(database.connect(url)) as control, control.connect() as connection:  # creates and changes nothing
        assert {table.name: rows(connection, table) for table in sources.control_tables()} == filled.control_rows
    assert databases.has_hot_log(server(url), filled.hot_rows["node"][0][0])
    with pytest.raises(MoveRefused, match="has the hot log of another data folder"):
        databases.has_hot_log(server(url), "other")
    with pytest.raises(MoveRefused, match="has a hot log"):
        copy(url, sources)


def test_generated_ids_continue_above_those_ever_used(sources: Sources, url: str) -> None:
    copy(url, sources)
    with closing(batches.connect(server(url))) as hot:
        assert (batches.last_id(hot), batches.deleted_through(hot)) == (HIGHEST, HIGHEST - ROWS)
        batches.append(hot, pa.RecordBatch.from_pylist([], HOT), 0)
        assert batches.last_id(hot) == HIGHEST + 1
        refusals.add(hot, "project")
        assert refusals.last(hot) == HIGHEST + 1
    with closing(database.connect(url)) as control, control.transaction() as connection:
        entry = {"job": value(Column("job_id", "TEXT", None), 1, is_null=False), "turn": 1, "now_us": 1}
        jobs.STATEMENTS.run(connection, "ADD_ENTRY", {**entry, "kind": "turn", "text": ""})
        assert connection.execute("SELECT max(id) FROM job_log").fetchone() == (HIGHEST + 1,)
        attempt = {"account": "a", "address": "b", "is_success": False, "at_s": 1}
        assert attempts.STATEMENTS.run(connection, "ADD", attempt).fetchone() == (HIGHEST + 1,)


def test_failed_copy_leaves_the_database_empty(sources: Sources, url: str) -> None:
    def fail() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        databases.copy(server(url), sources, "public", lambda count: None, fail)
    with closing(sql.opened(url)) as control:
        assert sql.table_names(control) == []
        assert postgresql.SCHEMA not in sql.column(control, "SELECT nspname FROM pg_namespace")


@pytest.mark.parametrize("text", ["'z' || char(0)", "CAST(x'7aff' AS TEXT)"])
def test_text_that_postgresql_refuses_is_an_error_that_names_the_table(url: str, tmp_path: Path, text: str) -> None:
    with closing(batches.connect_file(tmp_path / "hot.sqlite")) as hot:
        for each in MORE:
            each.create(hot)
        hot.execute("INSERT INTO refusals (internal_id) VALUES ('a'), ('b')")
        hot.execute(f"INSERT INTO refusals (internal_id) VALUES ({text})")
        with pytest.raises((ServerError, sqlite3.Error)) as caught:
            copy(url, Sources(hot, None, MORE))
    assert caught.value.__notes__ == ["in the table refusals, at row 3 or before it"]


SHARE_LINK = "INSERT INTO share_links (id, project_id, name, sha256, created_s) VALUES ('i', 'p', {name}, 's', {at})"
FAULTS = {
    "INSERT INTO refusals (internal_id) VALUES ('z' || char(0) || 'z')": (
        "the hot log has a value that PostgreSQL does not accept, in the column internal_id of the table refusals, in"
        " the row with the rowid 13: it has a NUL character; change it, then run the command again"
    ),
    "INSERT INTO refusals (internal_id) VALUES (CAST(x'7aff' AS TEXT))": "internal_id .* rowid 13: it is not UTF-8",
    "INSERT INTO refusals (internal_id) VALUES (x'7a')": "internal_id .* rowid 13: it is a BLOB",
    "INSERT INTO staged (id, files) VALUES (7, 'text')": "the column files of the table staged, .* 7: it is not a BLOB",
    "INSERT INTO answers VALUES ('p', 'k', x'00', 'text', 1)": (
        "column receipt of the table answers, in the row with the project_id 'p', key 'k': it is not a BLOB"
    ),
    "INSERT INTO event_ids VALUES (x'07', 'soon')": "seen_s of the table event_ids, .* id X'07': it is not an integer",
    "INSERT INTO loads VALUES (1, 'soon', 1)": "column loaded_s of the table loads, .*: it is not a number",
    SHARE_LINK.format(name=f"'{'é' * 101}'", at=1): "control database .* name of .*: it is longer than 100 characters",
    SHARE_LINK.format(name="'a'", at=1.5): "created_s of the table share_links, .*: it is not an integer",
    "UPDATE users SET epoch = 1 << 31": "epoch of the table users, .*: it has more than 32 bits",
    "UPDATE projects SET is_ending = 7": "is_ending of the table projects, .*: it is not 0 or 1",
    "UPDATE projects SET origins = '[1'": "origins of the table projects, .*: it is not JSON",
    "UPDATE source_policies SET from_date = 'soon'": "from_date of .*: it is not a date such as 2026-09-15",
}


@pytest.mark.parametrize("statement", FAULTS)
def test_value_that_postgresql_refuses_is_named(filled: Filled, tmp_path: Path, url: str, statement: str) -> None:
    for file in (filled.hot, filled.control):
        shutil.copy(file, tmp_path)
    hot, control = (sqlite3.connect(tmp_path / name, isolation_level=None) for name in ("hot.sqlite", "control.sqlite"))
    with closing(hot), closing(control):
        emptied = ("refusals", "staged", "answers", "event_ids", "loads", "share_links")
        for name in emptied:
            (control if name == "share_links" else hot).execute(f"DELETE FROM {name}")
        require(tables.require_accepted, Sources(hot, control, MORE))
        is_hot = any(f"INTO {name}" in statement for name in emptied[:-1])
        (hot if is_hot else control).execute(statement)
        with pytest.raises(MoveRefused, match=FAULTS[statement]):
            require(tables.require_accepted, Sources(hot, control, MORE))
        if "BLOB" not in FAULTS[statement]:  # PostgreSQL reads a text as one, or stores another text
            with pytest.raises((ServerError, sqlite3.Error)):
                copy(url, Sources(hot, control, MORE))


def test_database_with_a_table_of_the_same_name_is_refused(sources: Sources, url: str) -> None:
    with closing(sql.opened(url)) as control:
        sql.run(control, "CREATE TABLE keys (a INTEGER)")
    with pytest.raises(MoveRefused, match="has a table keys: name an empty database"):
        databases.rehearse(server(url), sources, "public")


def test_column_that_no_module_defines_is_refused(tmp_path: Path) -> None:
    with closing(batches.connect_file(tmp_path / "hot.sqlite")) as hot:
        require(tables.require_known, Sources(hot, None, MORE))
        hot.execute("ALTER TABLE batches ADD COLUMN later INTEGER")
        with pytest.raises(MoveRefused, match="the columns later in its table batches"):
            require(tables.require_known, Sources(hot, None, MORE))
