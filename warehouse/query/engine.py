"""DuckDB over the lake's files: one in-process database, a cursor a query.

Extensions are never fetched: everything the queries need is built in.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.lake.delta_table import File, Spec
from warehouse.lake.table_schema import STEPS, Steps

MEMORY_LIMIT = "256MB"
CHANGEABLE = ("TimeZone", "enable_progress_bar", "memory_limit", "threads")
"""The settings that whoever asks may change in a locked database: none of them reaches a file."""
_PATTERN = re.compile(r"([*?\[])")


def connect(spill: Path, memory_limit: str = MEMORY_LIMIT) -> duckdb.DuckDBPyConnection:
    """A database in memory; sorts larger than the limit spill into the folder `spill`, made when one does."""
    database = duckdb.connect(
        config={
            "memory_limit": memory_limit,
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    database.execute("SET GLOBAL TimeZone = 'UTC'")  # without GLOBAL the cursors keep the machine's own
    return database


def lock(database: duckdb.DuckDBPyConnection, files: Iterable[File]) -> None:
    """From here on the database opens these files and its spilled sorts, no other and no network, for good."""
    # A name with a pattern's sign in it is looked up twice: as the pattern that reads it, and as the file it finds.
    names = {text for file in files for text in (_quoted(file.path), _quoted(_pattern(file.path)))}
    database.execute(f"SET allowed_paths = [{', '.join(sorted(names))}]")
    database.execute("SET enable_external_access = false")
    database.execute(f"SET allowed_configs = [{', '.join(map(_quoted, CHANGEABLE))}]")
    database.execute("SET lock_configuration = true")


def parquet(files: Iterable[File]) -> str:
    """The table function that reads these files, partition column included. Never call it with none."""
    names = ", ".join(_quoted(_pattern(file.path)) for file in files)
    return f"read_parquet([{names}], hive_partitioning = true)"


_SQL_TYPES = {
    pa.string(): "VARCHAR",
    pa.int16(): "SMALLINT",
    pa.int64(): "BIGINT",
    pa.date32(): "DATE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
}


def parquet_by_name(files: Iterable[File]) -> str:
    """Return `parquet(files)` with null where a file is older than a column. Never call it with no files."""
    return f"{parquet(files).removesuffix(')')}, union_by_name = true)"


def rows(spec: Spec, files: Iterable[File], steps: Mapping[str, Steps] = STEPS) -> str:
    """Return the subquery that reads every column of a table: null where a file is older than the column.

    Never call it with no files. Without a step all files have all columns, and DuckDB need not read every file's
    schema first, which took 25 ms for 365 files.
    """
    files = tuple(files)
    if not steps[spec.name]:
        return parquet(files)
    return f"(SELECT * FROM {no_rows(spec)} UNION ALL BY NAME SELECT * FROM {parquet_by_name(files)})"


def no_rows(spec: Spec) -> str:
    """Return the subquery that has the columns of a table, and no row."""
    columns = ", ".join(f"NULL::{_SQL_TYPES[field.type]} AS {field.name}" for field in spec.schema)
    return f"(SELECT {columns} WHERE false)"


def _pattern(path: str) -> str:
    """What finds this path alone: the signs that DuckDB would take for a pattern in brackets."""
    return _PATTERN.sub(r"[\1]", path)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
