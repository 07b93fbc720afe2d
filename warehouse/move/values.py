"""Values of SQLite tables that PostgreSQL does not accept.

SQLite enforces neither the type nor the length of a value.
"""

import sqlite3
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from warehouse.errors import MoveRefused


def require_accepted(source: sqlite3.Connection, name: str, tables: Sequence[sa.Table]) -> None:
    """Raise MoveRefused for the first value that PostgreSQL refuses. `name` is that of the file."""
    source.create_function("is_utf8", 1, _is_utf8, deterministic=True)
    for table in tables:
        for column in table.columns:
            for condition, fault in _conditions(column.type):
                if row := _find(source, column, condition):
                    raise MoveRefused(
                        f"{name} has a value that PostgreSQL does not accept, in the column {column.name} of the table "
                        f"{table.name}, in the row with the {row}: {fault}; change it, then run the command again"
                    )


def _conditions(kind: sa.types.TypeEngine[object]) -> Iterator[tuple[str, str]]:
    """Yield the conditions that PostgreSQL sets for values of a type, each with the fault of a value that fails it."""
    match kind:
        case sa.Boolean():
            yield "{value} IN (0, 1)", "it is not 0 or 1"
        case sa.LargeBinary():
            yield "typeof({value}) = 'blob'", "it is not a BLOB"
        case sa.Float():
            yield "typeof({value}) IN ('real', 'integer')", "it is not a number"
        case sa.Integer():
            yield "typeof({value}) = 'integer'", "it is not an integer"
            if not isinstance(kind, sa.BigInteger):
                yield "{value} BETWEEN -2147483648 AND 2147483647", "it has more than 32 bits"
        case sa.Date():
            yield "{value} IS date({value})", "it is not a date such as 2026-09-15"
        case _:
            yield "typeof({value}) <> 'blob'", "it is a BLOB"
            yield "instr({value}, char(0)) = 0", "it has a NUL character"
            yield "is_utf8(CAST({value} AS BLOB))", "it is not UTF-8"
            if isinstance(kind, sa.JSON):
                yield "json_valid({value})", "it is not JSON"
            elif isinstance(kind, sa.String) and kind.length is not None:
                yield f"length({{value}}) <= {kind.length}", f"it is longer than {kind.length} characters"


def _find(source: sqlite3.Connection, column: "sa.Column[object]", condition: str) -> str | None:
    """Return the name of a row whose value does not meet a condition; None if there is none."""
    table, value = column.table, f'"{column.name}"'
    assert isinstance(table, sa.Table)
    keys = ["rowid"] if table.dialect_options["sqlite"]["with_rowid"] else table.primary_key.columns.keys()
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
