"""DuckDB over the lake's files: one in-process database, a cursor a query.

Extensions are never fetched: everything the queries need is built in.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import duckdb

from warehouse.lake import File

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


def _pattern(path: str) -> str:
    """What finds this path alone: the signs that DuckDB would take for a pattern in brackets."""
    return _PATTERN.sub(r"[\1]", path)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
