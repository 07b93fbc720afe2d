"""Queries of the site's owner in DuckDB's SQL, over the views of `sql_views`."""

import re
import resource
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from threading import Timer

import duckdb
import pyarrow as pa

from warehouse.errors import InvalidSql, NoData
from warehouse.folder import HOT_LOG, LAKE, RUN
from warehouse.hotlog.connection import HotLogPlace
from warehouse.integrity import completeness
from warehouse.lake import agents_file
from warehouse.lake.agents_file import AGENTS_FILE
from warehouse.lake.roots import LocalPath, Root
from warehouse.query import engine, sql_views
from warehouse.query.snapshot import SnapshotReader
from warehouse.schema import HOT

MEMORY_LIMIT = "1GB"
"""Memory limit of one connection. 500,000 hot rows take 0.2 GB of it, and a median cannot spill."""
OTHER_BYTES_MAX = 1024**3
"""Memory that `limit_memory` allows beside MEMORY_LIMIT, in bytes. DuckDB does not count its lists and texts of many
rows, nor the rows that Arrow and Python have."""
TIMEOUT_S = 300
"""Default time limit of a query, in seconds."""
BATCH_ROWS = 8_192
"""Rows of a result in memory at a time: about 3 MB for all columns of hits."""
ALLOWED = "a query must be one SELECT, DESCRIBE, SHOW or SUMMARIZE"
ADVICE = {
    duckdb.StatementType.MULTI: "name the values of a PIVOT, as in PIVOT daily_views ON traffic IN ('human', 'ai')",
    duckdb.StatementType.EXPLAIN: "EXPLAIN works on warehouse.connect(), see docs/analysis.md",
}
TOO_LARGE = f"the query takes more than {MEMORY_LIMIT} of memory: select fewer days or columns"
TOO_LONG = "the query took longer than its time limit: select fewer days or columns, or raise --timeout"
READ_ONLY = "SQL cannot change the data"
_WHOLE = re.compile(r"HUGEINT|DECIMAL\(\d+,\s*0\)")
"""Types of sums of whole numbers."""


def connect(
    data: str | PathLike[str], root: Root | None = None, hot_log: HotLogPlace | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a database with the views of a data folder, in a snapshot taken now. Only their files can be opened.

    `root` is the root of the lake, and `hot_log` the place of the hot log, if they are not in the data folder.

    Raises:
        NoData: the folder has no data of Readership. Nothing is created there.
        DataIncomplete: the hot log is missing or older than the lake.
    """
    folder = Path(data).absolute()
    hot_log, lake = hot_log or folder / HOT_LOG, root or LocalPath(folder / LAKE)
    completeness.require_identity(hot_log, lake)
    if (isinstance(hot_log, Path) and not hot_log.is_file()) or not (lake / AGENTS_FILE).exists():
        raise NoData(f"there is no data in {folder}: name the data folder of `readership serve`")
    with closing(SnapshotReader(hot_log, lake, columns=HOT.names)) as reader:
        snapshots = reader.take_all()
    database = engine.connect(folder / RUN / "spill", MEMORY_LIMIT)
    try:
        sql_views.create(database, snapshots, agents_file.read(lake))
        engine.lock(database, [file for snapshot in snapshots.values() for file in snapshot.files])
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def run_query(
    data: str | PathLike[str],
    sql: str,
    root: Root | None = None,
    hot_log: HotLogPlace | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Iterator[pa.RecordBatchReader]:
    """Yield the result of one SELECT, DESCRIBE, SHOW or SUMMARIZE, streamed in batches.

    The query ends after `timeout_s` seconds, also while its rows are read; 0 is no limit.

    Raises:
        NoData: see `connect`.
        InvalidSql: `sql` is another statement, or DuckDB refuses it; the message is DuckDB's. For a value that
            cannot be computed, the error is raised when its row is read.
    """
    with closing(connect(data, root, hot_log)) as database, _ended_after(database, timeout_s):
        with _invalid_sql():
            types = [statement.type for statement in database.extract_statements(sql)]
            if types != [duckdb.StatementType.SELECT]:
                raise InvalidSql(f"{ALLOWED}; {ADVICE.get(types[0], READ_ONLY) if len(types) == 1 else READ_ONLY}")
            # A statement whose WITH contains a COPY or DELETE has the type SELECT, but is refused in a subquery.
            database.sql("FROM query(?)", params=[sql])
            rows = _with_int64_sums(database, sql)
        with closing(_read(rows)) as batches:  # DuckDB complains about a reader that is still open when it closes
            yield pa.RecordBatchReader.from_batches(rows.schema, batches)


@contextmanager
def _invalid_sql() -> Iterator[None]:
    """Raise InvalidSql for the errors of DuckDB that the query causes."""
    try:
        yield
    except duckdb.CatalogException as error:
        views = f"\n\nThe views are {', '.join(sql_views.VIEWS)}." if "Table with name" in str(error) else ""
        raise InvalidSql(f"{error}{views}") from None
    except (duckdb.OutOfMemoryException, MemoryError):  # ArrowMemoryError is a MemoryError
        raise InvalidSql(TOO_LARGE) from None
    except duckdb.InterruptException:
        raise InvalidSql(TOO_LONG) from None
    except duckdb.OperationalError:
        raise  # a file or the disk is at fault, not the query
    except duckdb.Error as error:
        raise InvalidSql(
            f"{ALLOWED}; {READ_ONLY}" if "must be at the top level" in str(error) else str(error)
        ) from None


def _read(rows: pa.RecordBatchReader) -> Generator[pa.RecordBatch, None, None]:
    with _invalid_sql():
        while True:
            try:
                batch = rows.read_next_batch()
            except StopIteration:
                return
            except OSError as error:  # after the first batch, Arrow raises OSError for any error of DuckDB
                reasons = {"INTERRUPT Error": TOO_LONG, "Out of Memory Error": TOO_LARGE}
                known = (reason for text, reason in reasons.items() if text in str(error))
                raise InvalidSql(next(known, str(error))) from None
            yield batch


def _with_int64_sums(database: duckdb.DuckDBPyConnection, sql: str) -> pa.RecordBatchReader:
    """Return the rows of a query with sums of whole numbers as int64 where all values fit. DuckDB uses 128 bits.

    Whether the values fit is known only at the last row: a result with such a column is a table of DuckDB first, which
    spills.
    """
    relation = database.sql(sql)
    names = relation.columns
    wide = [index for index, kind in enumerate(relation.types) if _WHOLE.fullmatch(str(kind))]
    if not wide:
        return relation.to_arrow_reader(BATCH_ROWS)
    columns = [f"c{index}" for index in range(len(names))]
    database.execute(f"CREATE TEMP TABLE result AS SELECT * FROM query(?) AS result ({', '.join(columns)})", [sql])
    fits = ", ".join(f"count(c{index}) = count(TRY_CAST(c{index} AS BIGINT))" for index in wide)
    (all_fit,) = database.execute(f"SELECT {fits} FROM result").fetchall()
    narrow = {index for index, is_narrow in zip(wide, all_fit, strict=True) if is_narrow}
    selected = (f"c{index}::BIGINT" if index in narrow else column for index, column in enumerate(columns))
    rows = database.sql(f"SELECT {', '.join(selected)} FROM result").to_arrow_reader(BATCH_ROWS)
    schema = pa.schema([field.with_name(name) for field, name in zip(rows.schema, names, strict=True)])
    renamed = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    return pa.RecordBatchReader.from_batches(schema, renamed)


@contextmanager
def _ended_after(database: duckdb.DuckDBPyConnection, timeout_s: float) -> Iterator[None]:
    """Interrupt the query of a database that runs after `timeout_s`."""
    timer = Timer(timeout_s, database.interrupt)
    if timeout_s:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timeout_s:
            timer.join()  # before the database is closed


def limit_memory() -> None:
    """Limit the memory of this process to what it has, MEMORY_LIMIT and OTHER_BYTES_MAX."""
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    limit = used + int(MEMORY_LIMIT.removesuffix("GB")) * 1024**3 + OTHER_BYTES_MAX
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
