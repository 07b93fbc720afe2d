"""Values of SQLite tables that PostgreSQL does not accept.

SQLite enforces neither the type nor the length of a value.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from warehouse.database.tables import Column, Table
from warehouse.errors import MoveRefused


def require_accepted(source: sqlite3.Connection, name: str, tables: Sequence[Table]) -> None:
    """Raise MoveRefused for the first value that PostgreSQL refuses. `name` is that of the file."""
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
