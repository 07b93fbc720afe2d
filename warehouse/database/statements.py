"""SQL statements that SQLAlchemy Core compiles for each database.

A module of tables has its statements as constants, such as `warehouse.hotlog.tables`. For PostgreSQL they are compiled
when they are first run. For SQLite they are in a file beside the module, because SQLAlchemy takes 0.2 s to import and
most commands need it for nothing else; `python -m warehouse.database.statements MODULE...` writes the file, and a test
compares it with the module. SQLAlchemy's own connection would add 25 µs to each statement, and a post has one.
"""

import importlib
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.database.postgresql import Cursor, PostgresqlConnection

if TYPE_CHECKING:
    import sqlalchemy as sa

Connection = sqlite3.Connection | PostgresqlConnection
"""Connection to a database on SQLite, in autocommit mode, or on PostgreSQL."""
Values = Mapping[str, object]
"""Values of a statement's parameters, by their names."""
CREATE = "CREATE"
"""Name of the statement that creates all tables of a module."""
Positional = Callable[[Values], Sequence[object]]
"""Function that returns the values of a statement in the order of its parameters."""
Text = tuple[str, str, str]
"""A statement: its name, the names of its parameters in order, and its SQL."""
_NAME = re.compile(r"^-- (\w+)\((.*)\)\n", re.MULTILINE)


class Statements:
    """Statements of one module of tables, by their names. Each takes values for all its parameters, by their names."""

    def __init__(self, module: str, file: Path) -> None:
        """Import nothing yet. `file` has the statements for SQLite."""
        self._module, self._file = module, file

    def run(self, connection: Connection, name: str, values: Values = {}) -> Cursor:  # noqa: B006  # never changed
        """Run a statement."""
        if isinstance(connection, sqlite3.Connection):
            text, positional = self._sqlite[name]
            return connection.execute(text, positional(values))
        return connection.execute(self._postgresql[name], values)

    def run_alone(self, connection: Connection, name: str, values: Values) -> Cursor:
        """Run a statement as a write transaction of its own, in one round trip."""
        if isinstance(connection, sqlite3.Connection):
            return self.run(connection, name, values)
        return connection.execute_alone(self._postgresql[name], values)

    def run_many(self, connection: Connection, name: str, values: Sequence[Values]) -> None:
        """Run a statement once for each mapping of values, in one round trip."""
        if isinstance(connection, sqlite3.Connection):
            text, positional = self._sqlite[name]
            connection.executemany(text, map(positional, values))
        else:
            connection.execute_each(self._postgresql[name], values)

    def changes_of_each(self, connection: Connection, name: str, values: Sequence[Values]) -> list[int]:
        """Return the numbers of rows that a statement changes, run once for each mapping of values."""
        if isinstance(connection, sqlite3.Connection):
            text, positional = self._sqlite[name]
            return [connection.execute(text, positional(each)).rowcount for each in values]
        return [cursor.rowcount for cursor in connection.execute_each(self._postgresql[name], values)]

    def rows_of_each(self, connection: Connection, name: str, values: Sequence[Values]) -> Iterator[Any]:
        """Yield the rows that a statement returns, run once for each mapping of values."""
        if isinstance(connection, sqlite3.Connection):
            text, positional = self._sqlite[name]
            return chain.from_iterable(connection.execute(text, positional(each)) for each in values)
        return chain.from_iterable(
            cursor.fetchall() for cursor in connection.execute_each(self._postgresql[name], values)
        )

    def stream(self, connection: Connection, name: str, values: Values) -> Iterator[Any]:
        """Yield the rows of a statement, which are not all in memory at once."""
        if isinstance(connection, sqlite3.Connection):
            text, positional = self._sqlite[name]
            return connection.execute(text, positional(values))
        return connection.stream(self._postgresql[name], values)

    def create(self, connection: Connection) -> None:
        """Create those tables and indexes that do not exist."""
        is_file = isinstance(connection, sqlite3.Connection)
        text = self._sqlite[CREATE][0] if is_file else self._postgresql[CREATE]
        for statement in text.split(";"):
            connection.execute(statement)

    @property
    def metadata(self) -> "sa.MetaData":
        """Return the tables of the module. Imports SQLAlchemy."""
        metadata: sa.MetaData = importlib.import_module(self._module).METADATA
        return metadata

    @cached_property
    def _sqlite(self) -> dict[str, tuple[str, Positional]]:
        """Return the text of each statement, and the function that puts its values in order."""
        return {
            name: (text, _positional(parameters.split()))
            for name, parameters, text in parse(self._file.read_text(encoding="utf-8"))
        }

    @cached_property
    def _postgresql(self) -> dict[str, str]:
        from sqlalchemy.dialects.postgresql import psycopg  # noqa: PLC0415  # see the module's docstring

        dialect = psycopg.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has no annotation
        return {name: text for name, _, text in compile_module(self._module, dialect)}


def _positional(names: Sequence[str]) -> Positional:
    """Return a function that returns the values of parameters in their order: SQLite binds names more slowly."""
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda values: (values[names[0]],)) if names else (lambda values: ())


def compile_module(module: str, dialect: "sa.Dialect") -> list[Text]:
    """Return all statements of a module of tables, the first of which creates the tables."""
    import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring

    tables = importlib.import_module(module)
    texts = [(CREATE, "", creation(tables.METADATA, dialect))]
    for name, statement in vars(tables).items():
        if isinstance(statement, sa.Select | sa.sql.dml.UpdateBase) and not name.startswith("_"):
            compiled = statement.compile(dialect=dialect)
            constants = [each for each, value in compiled.params.items() if value is not None]
            assert not constants, f"{module}.{name} has constants as parameters: {constants}"
            texts.append((name, " ".join(compiled.positiontup or ()), " ".join(str(compiled).split())))
    return texts


def creation(metadata: "sa.MetaData", dialect: "sa.Dialect") -> str:
    """Return the statements that create those tables and indexes that do not exist, separated by semicolons."""
    import sqlalchemy as sa  # noqa: PLC0415  # see the module's docstring
    from sqlalchemy.schema import CreateIndex, CreateTable  # noqa: PLC0415  # see the module's docstring

    tables = metadata.sorted_tables
    elements: list[sa.schema.ExecutableDDLElement] = [
        *(CreateTable(table, if_not_exists=True) for table in tables if table.info.get("only") in {None, dialect.name}),
        *(CreateIndex(index, if_not_exists=True) for table in tables for index in sorted(table.indexes, key=str)),
    ]
    return ";\n".join(" ".join(str(each.compile(dialect=dialect)).split()) for each in elements)


def sqlite_text(module: str) -> str:
    """Return the content of a module's file of statements for SQLite."""
    from sqlalchemy.dialects.sqlite import dialect  # noqa: PLC0415  # see the module's docstring

    texts = compile_module(module, dialect())
    return "\n".join(f"-- {name}({parameters})\n{text}\n" for name, parameters, text in texts)


def parse(text: str) -> list[Text]:
    """Return the statements in a file of `sqlite_text`."""
    _, *parts = _NAME.split(text)
    return [
        (name, parameters, statement.strip())
        for name, parameters, statement in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        module_file = importlib.import_module(name).__file__
        assert module_file is not None
        Path(module_file).with_suffix(".sqlite.sql").write_text(sqlite_text(name), encoding="utf-8")
