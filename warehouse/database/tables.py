"""Tables that the script CREATE of a file of statements defines."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warehouse.database.statements import Statements

_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*)\)( WITHOUT ROWID)?$")
_KEY = re.compile(r"PRIMARY KEY \((.*)\)")
_COLUMN = re.compile(r'"?(\w+)"? (DOUBLE PRECISION|[A-Z]+)(?:\((\d+)\))?( PRIMARY KEY)?')


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with its type in PostgreSQL. `characters` is the maximum length of a text; None without one."""

    name: str
    type: str
    characters: int | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table, with the names of its primary key. `has_rowid`: its rows in SQLite have the column `rowid`."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    has_rowid: bool

    @property
    def generated_id(self) -> str | None:
        """Return the name of the column that a sequence of PostgreSQL fills; None without one."""
        return next((column.name for column in self.columns if column.type.endswith("SERIAL")), None)

    @property
    def has_lasting_ids(self) -> bool:
        """Return whether SQLite records the highest id ever used (AUTOINCREMENT)."""
        return any(column.type == "BIGSERIAL" for column in self.columns)


def of(statements: Iterable[Statements]) -> list[Table]:
    """Return the tables of files of statements, in the order in which they are created."""
    return [table for each in statements for table in _tables(each.definition)]


def _tables(definition: str) -> Iterator[Table]:
    for text in definition.split(";"):
        if (match := _TABLE.fullmatch(text.strip())) is not None:
            name, body, without_rowid = match.groups()
            parts = re.split(r", (?![^(]*\))", body.strip())
            keys = [key[1] for part in parts if (key := _KEY.fullmatch(part))]
            columns = [column for part in parts if not _KEY.fullmatch(part) and (column := _COLUMN.match(part))]
            yield Table(
                name,
                tuple(Column(column[1], column[2], int(column[3]) if column[3] else None) for column in columns),
                tuple(each.strip('"') for each in keys[0].split(", "))
                if keys
                else tuple(column[1] for column in columns if column[4]),
                without_rowid is None,
            )
