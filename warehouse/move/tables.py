"""Rows of SQLite tables, copied to PostgreSQL tables of the same columns.

SQLite stores a boolean as 0 or 1, and JSON as text: the text format of
PostgreSQL's COPY takes both, and no value is decoded.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence

from warehouse.database.postgresql import PostgresqlConnection, ServerError
from warehouse.database.tables import Column, Table
from warehouse.errors import MoveRefused

REPORTED_ROWS = 10_000
"""Number of rows after which `on_rows` is called."""
OnRows = Callable[[int], None]
"""Function that is called with the number of rows that were copied since its last call."""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^'"
_COLUMNS = "SELECT name FROM pragma_table_info(?)"


def require_known(source: sqlite3.Connection, name: str, tables: Sequence[Table]) -> None:
    """Raise MoveRefused if a file has a table or column that `tables` lack. `name` is the name of the file."""
    columns = {table.name: {column.name for column in table.columns} for table in tables}
    for (table,) in source.execute(_TABLES).fetchall():
        actual = {column for (column,) in source.execute(_COLUMNS, (table,))}
        if unknown := sorted(actual - columns.get(table, set())):
            raise MoveRefused(
                f"{name} has the columns {', '.join(unknown)} in its table {table}, which this release does not know"
            )


def count_rows(source: sqlite3.Connection, tables: Sequence[Table]) -> int:
    return sum(_count(source, table) for table in tables)


def copy(source: sqlite3.Connection, target: PostgresqlConnection, table: Table, on_rows: OnRows) -> int:
    """Replace the rows of a table by the source's; return their number.

    Raises MoveRefused if the table does not have as many rows as the source afterwards.
    """
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    target.execute(f'DELETE FROM "{table.name}"')  # a new hot log has a row in `node`
    rows = reported = 0
    try:
        with target.copying(f'COPY "{table.name}" ({names}) FROM STDIN') as copying:
            for row in source.execute(f'SELECT {names} FROM "{table.name}"'):
                copying.write_row(row)
                rows += 1
                if rows - reported == REPORTED_ROWS:
                    on_rows(REPORTED_ROWS)
                    reported = rows
    except (sqlite3.Error, ServerError) as error:  # SQLite also stores texts and numbers that PostgreSQL refuses
        error.add_note(f"in the table {table.name}, at row {rows + 1:,} or before it")
        raise
    on_rows(rows - reported)
    copied = target.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0]
    if not rows == copied == _count(source, table):
        raise MoveRefused(f"the table {table.name} has {_count(source, table)} rows, and {copied} were copied")
    return rows


def last_id(source: sqlite3.Connection, table: Table) -> int | None:
    """Return the highest generated id that a table ever had; None for a table without generated ids."""
    column = table.generated_id
    if column is None:
        return None
    (highest,) = source.execute(f'SELECT coalesce(max("{column}"), 0) FROM "{table.name}"').fetchone()
    if not table.has_lasting_ids:
        return int(highest)
    used = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)).fetchone()
    return max(int(highest), int(used[0]) if used else 0)


def continue_above(target: PostgresqlConnection, table: Table, id: int) -> None:
    """Set the highest used id of a table whose ids are those of a PostgreSQL sequence."""
    if id > 0:
        sequence = "SELECT setval(pg_get_serial_sequence(%s, %s), %s)"
        target.execute(sequence, (f'"{table.name}"', table.generated_id, id))


def _count(source: sqlite3.Connection, table: Table) -> int:
    return int(source.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0])


def require_accepted(source: sqlite3.Connection, name: str, tables: Sequence[Table]) -> None:
    """Raise MoveRefused for the first value that PostgreSQL refuses. `name` is the name of the file."""
    source.create_function("is_utf8", 1, _is_utf8, deterministic=True)
    for table in tables:
        for column in table.columns:
            for condition, fault in _conditions(column):
                if row := _find(source, table, column, condition):
                    raise MoveRefused(
                        f"{name} has a value that PostgreSQL does not accept, in the column {column.name} of the table "
                        f"{table.name}, in the row with the {row}: {fault}; change it, then run the command again"
                    )


def _conditions(column: Column) -> Iterator[tuple[str, str]]:
    """Yield the conditions that PostgreSQL sets for a column's values, each with the fault of a value that fails it."""
    match column.type:
        case "BOOLEAN":
            yield "{value} IN (0, 1)", "it is not 0 or 1"
        case "BYTEA":
            yield "typeof({value}) = 'blob'", "it is not a BLOB"
        case "DOUBLE PRECISION":
            yield "typeof({value}) IN ('real', 'integer')", "it is not a number"
        case "BIGSERIAL" | "BIGINT":
            yield "typeof({value}) = 'integer'", "it is not an integer"
        case "SERIAL" | "INTEGER":
            yield "typeof({value}) = 'integer'", "it is not an integer"
            yield "{value} BETWEEN -2147483648 AND 2147483647", "it has more than 32 bits"
        case "DATE":
            yield "{value} IS date({value})", "it is not a date such as 2026-09-15"
        case _:
            yield "typeof({value}) <> 'blob'", "it is a BLOB"
            yield "instr({value}, char(0)) = 0", "it has a NUL character"
            yield "is_utf8(CAST({value} AS BLOB))", "it is not UTF-8"
            if column.type == "JSON":
                yield "json_valid({value})", "it is not JSON"
            elif column.characters is not None:
                yield f"length({{value}}) <= {column.characters}", f"it is longer than {column.characters} characters"


def _find(source: sqlite3.Connection, table: Table, column: Column, condition: str) -> str | None:
    """Return the name of a row whose value does not meet a condition; None if there is none."""
    value = f'"{column.name}"'
    keys = ["rowid"] if table.has_rowid else table.key
    quoted = ", ".join(f'quote("{key}")' for key in keys)
    where = f"{value} IS NOT NULL AND NOT ({condition.format(value=value)})"
    row = source.execute(f'SELECT {quoted} FROM "{table.name}" WHERE {where} LIMIT 1').fetchone()
    return row and ", ".join(f"{key} {text}" for key, text in zip(keys, row, strict=True))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
