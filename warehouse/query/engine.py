"""DuckDB over the lake's files: one in-process database, and a cursor for each query.

No extension is installed or loaded: the queries use only what is built in.
"""

import os
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore, Lock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse import disk
from warehouse.lake import roots
from warehouse.lake.delta_table import File
from warehouse.lake.lock import is_alive
from warehouse.lake.table_schema import MIGRATIONS, Migrations
from warehouse.tables import Spec

MEMORY_LIMIT = "256MB"
"""Default memory limit of a database."""
STREAM_ROWS = 16_384
"""Number of rows that DuckDB passes to a writer of a file at a time. With DuckDB's default of 131,072 rows, the
compaction of a day of 1 million hits used 580 MiB instead of 380."""
CHANGEABLE = ("TimeZone", "enable_progress_bar", "memory_limit", "threads")
"""Settings that can be changed in a locked database. None of them gives access to a file."""
READS_AT_ONCE = 2
"""Number of queries that read rows of `hits` into memory at the same time. Without a limit, ten threads that read 40
days of 10M hits reached the memory limit within 40 s. With this one they did not, and completed more reads."""
_OWNER = re.compile(r"(?:duckdb_temp|worker)_(\d+)_")
"""Start of the name of a spill file or folder, with the process that owns it."""
_PARAMETER = re.compile(r"\$(\w+)")
_PATTERN = re.compile(r"([*?\[])")
_READS = BoundedSemaphore(READS_AT_ONCE)
warnings.filterwarnings(
    "ignore", "Arrow output on a DB-API result"
)  # the copy takes less than a second plan: see `fetch`


Error = duckdb.Error
"""Error of a query, for callers outside of `warehouse`, which alone knows DuckDB."""


class Caller:
    """The caller of a report: whether it accepts a slow one, and got one, and the queries that end when it leaves."""

    def __init__(self, accepts_slow: bool) -> None:
        self.accepts_slow, self.is_slow, self._has_left = accepts_slow, False, False
        self._cursors, self._lock = list[duckdb.DuckDBPyConnection](), Lock()

    @contextmanager
    def wait_for(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Run queries of a cursor, which `leave` interrupts."""
        with self._lock:
            if self._has_left:
                raise duckdb.InterruptException
            self._cursors.append(cursor)
        try:
            yield
        finally:
            with self._lock:
                self._cursors.remove(cursor)

    def leave(self) -> None:
        """Interrupt the queries. Repeat the call: DuckDB ignores an interrupt just before a query begins."""
        with self._lock:
            self._has_left = True
            for cursor in self._cursors:
                cursor.interrupt()


_NOBODY = Caller(accepts_slow=True)
CALLER = ContextVar("CALLER", default=_NOBODY)
"""The caller of the report that this thread computes. Threads without one share a default, which never leaves."""


def connect(spill: Path, memory_limit: str = MEMORY_LIMIT, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """Create a database in memory. Larger sorts spill into the folder `spill`, which is created when needed.

    `threads` is the number of threads of its queries, by default one for each core. What killed processes have left in
    the folder is removed.
    """
    _remove_dead(spill)
    database = duckdb.connect(
        config={
            "memory_limit": memory_limit,
            **({} if threads is None else {"threads": threads}),
            "temp_directory": str(spill),
            # Freed memory returns to the operating system. With the defaults a server used 13 MiB more, and 40 MiB more
            # at its peak, after the pages of 100M hits.
            "allocator_background_threads": True,
            "allocator_flush_threshold": "8MB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    roots.register(database)
    database.execute("SET GLOBAL TimeZone = 'UTC'")  # without GLOBAL, cursors use the time zone of the machine
    return database


@dataclass(frozen=True, slots=True)
class Share:
    """Share of a machine for the database of a task, of which `workers` run at the same time."""

    spill: Path
    workers: int = 1
    memory_limit: str = MEMORY_LIMIT

    @contextmanager
    def database(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a new database, and close it. Larger sorts spill into a folder in `spill`, which is deleted."""
        disk.make_folder(self.spill)
        threads = max(1, len(os.sched_getaffinity(0)) // self.workers)
        with (
            TemporaryDirectory(prefix=f"worker_{os.getpid()}_", dir=self.spill) as folder,
            closing(connect(Path(folder), self.memory_limit, threads)) as database,
        ):
            yield database


def _remove_dead(spill: Path) -> None:
    """Remove the spill files and folders of dead processes. DuckDB removes the files only when it spills itself.

    A process in another container seems dead. It has its files open, and can still use them.
    """
    if not spill.exists():
        return
    for path in spill.iterdir():
        owner = _OWNER.match(path.name)
        if owner and not is_alive(int(owner[1])):
            with suppress(OSError):  # another process may remove it, too
                shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def reader(database: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor that reads rows of `hits` into memory: at most READS_AT_ONCE, which share one memory limit."""
    with _READS, interruptible_cursor(database) as cursor:
        yield cursor


@contextmanager
def interruptible_cursor(database: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a cursor whose queries end when their caller leaves, and close it."""
    with database.cursor() as cursor, interruptible(cursor):
        yield cursor


def interruptible(cursor: duckdb.DuckDBPyConnection) -> AbstractContextManager[None]:
    """Return a context in which the queries of a cursor end when their caller leaves."""
    return CALLER.get().wait_for(cursor)


def fetch(cursor: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, object]) -> pa.Table:
    """Return the rows of a statement, which binds those of the values that it names.

    `cursor.sql` would plan it twice, which takes 3 to 5 ms with 14 files.
    """
    # The path of a file may have a $, too.
    named = {name: values[name] for name in _PARAMETER.findall(sql) if name in values}
    return cursor.execute(sql, named).to_arrow_table()


def lock(database: duckdb.DuckDBPyConnection, files: Iterable[File]) -> None:
    """Restrict a database, irrevocably, to these files and its spill folder, without network access."""
    # DuckDB checks a name with a wildcard in it twice: as the escaped pattern, and as the file that it matches.
    names = {text for file in files for text in (_quoted(file.path), _quoted(_pattern(file.path)))}
    database.execute(f"SET allowed_paths = [{', '.join(sorted(names))}]")
    database.execute("SET enable_external_access = false")
    database.execute(f"SET allowed_configs = [{', '.join(map(_quoted, CHANGEABLE))}]")
    database.execute("SET lock_configuration = true")


def parquet(files: Iterable[File]) -> str:
    """Return the table function that reads these files, partition column included. At least one file is required."""
    return parquet_at(file.path for file in files)


def parquet_at(paths: Iterable[str]) -> str:
    """Return the table function that reads the files at these paths, partition column included. At least one path."""
    names = ", ".join(map(path_literal, paths))
    return f"read_parquet([{names}], hive_partitioning = true)"


_SQL_TYPES = {
    pa.string(): "VARCHAR",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.date32(): "DATE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
}


def parquet_by_name(files: Iterable[File]) -> str:
    """Return the table function that reads these files, with null for columns that a file does not have."""
    return f"{parquet(files).removesuffix(')')}, union_by_name = true)"


def rows(spec: Spec, files: Iterable[File], known: Mapping[str, Migrations] = MIGRATIONS, columns: str = "*") -> str:
    """Return the subquery that reads all columns of a table, with null for columns that a file does not have.

    At least one file is required. `columns` is `*, filename` for a query that also reads the names of the files. Only
    for files of an older release does DuckDB read the schema of each file in every query, which took 25 ms for 365
    files.
    """
    files = tuple(files)
    older = [file for file in files if known.get(spec.name) and not _has_columns(file.path, tuple(spec.schema.names))]
    if not older:
        return parquet(files)
    newer = [file for file in files if file not in older]
    selects = [f"SELECT * FROM {no_rows(spec)}", f"SELECT {columns} FROM {parquet_by_name(older)}"]
    selects += [f"SELECT {columns} FROM {parquet(newer)}"] if newer else []
    return f"({' UNION ALL BY NAME '.join(selects)})"


@lru_cache(65_536)
def _has_columns(path: str, names: tuple[str, ...]) -> bool:
    """Return whether a file has the columns of its table; one of them is the partition, which no file has.

    A file never changes. A missing or damaged one is left to DuckDB, which names it in its error.
    """
    try:
        return len(set(names) - set(pq.read_schema(roots.at(path).open_parquet()).names)) <= 1
    except (OSError, pa.ArrowInvalid):
        return True


def no_rows(spec: Spec, *texts: str) -> str:
    """Return the subquery that has the columns of a table, and more columns of texts, and no rows."""
    fields = [(field.name, _SQL_TYPES[field.type]) for field in spec.schema]
    columns = ", ".join(f"NULL::{kind} AS {name}" for name, kind in [*fields, *((name, "VARCHAR") for name in texts)])
    return f"(SELECT {columns} WHERE false)"


def path_literal(path: str) -> str:
    """Return the SQL text of a path, for the functions that read files: they take no bound value."""
    return _quoted(_pattern(path))


def _pattern(path: str) -> str:
    """Return the glob pattern that matches only this path: its wildcards are put in brackets."""
    return _PATTERN.sub(r"[\1]", path)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
