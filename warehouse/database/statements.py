"""SQL statements of `.sql` files, which run on SQLite and on PostgreSQL.

A file is beside the module that owns its tables. Each statement follows a line with its name, as `-- ADD_KEY`, and has
its values as `:name`, which are always bound. Both databases run the same text. Where their SQL differs, the line also
names the database, as `-- ADD_KEY sqlite`. Tables and locks are written for PostgreSQL; `_SQLITE_WORDS` translates.

Measured against SQLAlchemy Core, which this replaced: its import took 0.17 to 0.25 s of processor time and 27 MB in
each process, compiling the hot log's statements for PostgreSQL 0.05 s, and a query of one row 97 µs instead of 12.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from warehouse.database.postgresql import Cursor, PostgresqlConnection

Connection = sqlite3.Connection | PostgresqlConnection
"""Connection to a database on SQLite, in autocommit mode, or on PostgreSQL."""
Values = Mapping[str, object]
"""Values of a statement's parameters, by their names."""
InOrder = Callable[[Values], Sequence[object]]
"""Function that returns the values of a statement in the order of its parameters."""
_HEADER = re.compile(r"^-- ([A-Z_]+)(?: (sqlite|postgresql))?\n", re.MULTILINE)
_COMMENT = re.compile(r"^-- .*\n", re.MULTILINE)
_REPEATED = re.compile(r"\[(.*?)\] \* (\d+)")
"""Text that is repeated, with the number of the repetition in place of `#`."""
_VALUE = re.compile(r"(?<!:):(\w+)")
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")
_SQLITE_WORDS = (
    (re.compile(r"\bBIGSERIAL PRIMARY KEY"), "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL"),
    (re.compile(r"\b(SERIAL|BIGINT) PRIMARY KEY"), "INTEGER PRIMARY KEY NOT NULL"),
    (re.compile(r"\bBYTEA\b"), "BLOB"),
    (re.compile(r"\bDOUBLE PRECISION\b"), "REAL"),
    (re.compile(r" FOR (NO KEY )?UPDATE( OF \w+)?( SKIP LOCKED)?"), ""),
)
_POSTGRESQL_WORDS = ((re.compile(r"\) WITHOUT ROWID"), ")"), (_VALUE, r"%(\1)s"))


def texts(module: str) -> dict[str, str]:
    """Return the templates of DuckDB's SQL in the file beside a module, by their names."""
    _, *parts = _HEADER.split(Path(module).with_suffix(".sql").read_text(encoding="utf-8"))
    return {name: _COMMENT.sub("", text).strip() for name, text in zip(parts[::3], parts[2::3], strict=True)}


class Statements:
    """Statements of one file, by their names. Each takes values for all its parameters, by their names."""

    def __init__(self, file: Path) -> None:
        """Read nothing yet."""
        self._file = file

    def run(self, connection: Connection, name: str, values: Values = {}) -> Cursor:  # noqa: B006  # never changed
        if isinstance(connection, sqlite3.Connection):
            text, in_order = self._sqlite[name]
            return connection.execute(text, in_order(values))
        return connection.execute(self._postgresql[name], values)

    def run_alone(self, connection: Connection, name: str, values: Values) -> Cursor:
        """Run a statement as a write transaction of its own, in one round trip."""
        if isinstance(connection, sqlite3.Connection):
            return self.run(connection, name, values)
        return connection.execute_alone(self._postgresql[name], values)

    def run_many(self, connection: Connection, name: str, values: Sequence[Values]) -> None:
        """Run a statement once for each mapping of values, in one round trip."""
        if isinstance(connection, sqlite3.Connection):
            text, in_order = self._sqlite[name]
            connection.executemany(text, map(in_order, values))
        else:
            connection.execute_each(self._postgresql[name], values)

    def changes_of_each(self, connection: Connection, name: str, values: Sequence[Values]) -> list[int]:
        """Return the numbers of rows that a statement changes, run once for each mapping of values."""
        return [cursor.rowcount for cursor in self._run_each(connection, name, values)]

    def rows_of_each(self, connection: Connection, name: str, values: Sequence[Values]) -> Iterator[Any]:
        """Yield the rows that a statement returns, run once for each mapping of values."""
        return chain.from_iterable(cursor.fetchall() for cursor in self._run_each(connection, name, values))

    def _run_each(self, connection: Connection, name: str, values: Sequence[Values]) -> Iterator[Cursor]:
        if isinstance(connection, sqlite3.Connection):
            return (self.run(connection, name, each) for each in values)
        return connection.execute_each(self._postgresql[name], values)

    def stream(self, connection: Connection, name: str, values: Values) -> Iterator[Any]:
        """Yield the rows of a statement, which are not all in memory at once."""
        if isinstance(connection, sqlite3.Connection):
            return iter(self.run(connection, name, values))
        return connection.stream(self._postgresql[name], values)

    def run_script(self, connection: Connection, name: str) -> None:
        """Run statements without values, which a semicolon separates."""
        text = self._sqlite[name][0] if isinstance(connection, sqlite3.Connection) else self._postgresql[name]
        for each in text.rstrip("; ").split(";"):
            connection.execute(each)

    def create(self, connection: Connection) -> None:
        """Create those tables and indexes of the script CREATE that do not exist."""
        self.run_script(connection, "CREATE")

    def is_complete(self, connection: Connection) -> bool:
        return all(has_table(connection, name) for name in _TABLE.findall(self.definition))

    @cached_property
    def definition(self) -> str:
        """The script CREATE, as it is in the file."""
        return _translated(self._file, "postgresql", ())["CREATE"]

    @cached_property
    def _sqlite(self) -> dict[str, tuple[str, InOrder]]:
        """Return each statement with `?` for its values: SQLite binds names 2 µs more slowly, and a post has one."""
        texts = _translated(self._file, "sqlite", _SQLITE_WORDS)
        return {name: (_VALUE.sub("?", text), _in_order(_VALUE.findall(text))) for name, text in texts.items()}

    @cached_property
    def _postgresql(self) -> dict[str, str]:
        return _translated(self._file, "postgresql", _POSTGRESQL_WORDS)


def _in_order(names: Sequence[str]) -> InOrder:
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda values: (values[names[0]],)) if names else (lambda values: ())


def has_table(connection: Connection, name: str) -> bool:
    if not isinstance(connection, sqlite3.Connection):
        return connection.execute("SELECT to_regclass(%s)", (name,)).fetchone()[0] is not None
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (name,)).fetchone() is not None


def _translated(file: Path, database: str, words: Sequence[tuple[re.Pattern[str], str]]) -> dict[str, str]:
    _, *parts = _HEADER.split(file.read_text(encoding="utf-8"))
    statements = {}
    for name, only, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if only in (None, database):
            plain = " ".join(_COMMENT.sub("", text).split())
            plain = _REPEATED.sub(_repeated, plain)
            for word, translation in words:
                plain = word.sub(translation, plain)
            statements[name] = plain
    return statements


def _repeated(match: re.Match[str]) -> str:
    return ", ".join(match[1].replace("#", str(number)) for number in range(int(match[2])))
