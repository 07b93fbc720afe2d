"""Queries of the site's owner in DuckDB's SQL, over the views `hits`, `daily_views`, `errors` and `agents`."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.errors import InvalidSql, NoData
from warehouse.folder import HOT_LOG, LAKE, RUN
from warehouse.hotlog.connection import HotLogPlace
from warehouse.integrity import completeness
from warehouse.lake import agents_file
from warehouse.lake.agents_file import AGENTS_FILE
from warehouse.lake.roots import Root
from warehouse.query import engine, sql_views
from warehouse.query.snapshot import SnapshotReader

MEMORY_LIMIT = "1GB"
"""Memory limit of one connection. 500,000 hot rows take 0.2 GB of it, and a median cannot spill."""
BATCH_ROWS = 8_192
"""Rows of a result in memory at a time: about 3 MB for all columns of hits."""
ALLOWED = "a query must be one SELECT, DESCRIBE, SHOW or SUMMARIZE"
ADVICE = {
    duckdb.StatementType.MULTI: "name the values of a PIVOT, as in PIVOT daily_views ON traffic IN ('human', 'ai')",
    duckdb.StatementType.EXPLAIN: "EXPLAIN works on warehouse.connect(), see docs/analysis.md",
}
READ_ONLY = "SQL cannot change the data"
VIEWS = ("hits", "daily_views", "errors", "agents")


def connect(
    data: str | PathLike[str], root: Root | None = None, hot_log: HotLogPlace | None = None
) -> duckdb.DuckDBPyConnection:
    """Return a database with the four views of a data folder, in a snapshot taken now. Only their files can be opened.

    `root` is the root of the lake, and `hot_log` the place of the hot log, if they are not in the data folder.

    Raises:
        NoData: the folder has no data of Readership. Nothing is created there.
        DataIncomplete: the hot log is missing or older than the lake.
    """
    folder = Path(data).absolute()
    hot_log, lake = hot_log or folder / HOT_LOG, root or folder / LAKE
    completeness.require_identity(hot_log, lake)
    if (isinstance(hot_log, Path) and not hot_log.is_file()) or not (lake / AGENTS_FILE).exists():
        raise NoData(f"there is no data in {folder}: name the data folder of `readership serve`")
    with closing(SnapshotReader(hot_log, lake)) as reader:
        snapshot = reader.take()
    database = engine.connect(folder / RUN / "spill", MEMORY_LIMIT)
    try:
        sql_views.create(database, snapshot, agents_file.read(lake))
        engine.lock(database, (*snapshot.hits.files, *snapshot.daily_views.files, *snapshot.daily_errors.files))
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def run_query(
    data: str | PathLike[str], sql: str, root: Root | None = None, hot_log: HotLogPlace | None = None
) -> Iterator[pa.RecordBatchReader]:
    """Yield the result of one SELECT, DESCRIBE, SHOW or SUMMARIZE, streamed in batches.

    Raises:
        NoData: see `connect`.
        InvalidSql: `sql` is another statement, or DuckDB refuses it; the message is DuckDB's. For a value that
            cannot be computed, the error is raised when its row is read.
    """
    with closing(connect(data, root, hot_log)) as database:
        with _invalid_sql():
            statements = database.extract_statements(sql)
            types = [statement.type for statement in statements]
            if types != [duckdb.StatementType.SELECT]:
                raise InvalidSql(f"{ALLOWED}; {ADVICE.get(types[0], READ_ONLY) if len(types) == 1 else READ_ONLY}")
            # A statement whose WITH contains a COPY or DELETE has the type SELECT, but is refused in a subquery.
            database.sql("FROM query(?)", params=[sql])
            rows = database.sql(sql).to_arrow_reader(BATCH_ROWS)
        with closing(_read(rows)) as batches:  # DuckDB complains about a reader that is still open when it closes
            yield _with_int64_sums(pa.RecordBatchReader.from_batches(rows.schema, batches))


@contextmanager
def _invalid_sql() -> Iterator[None]:
    """Raise InvalidSql for the errors of DuckDB that the query causes."""
    try:
        yield
    except duckdb.CatalogException as error:
        views = f"\n\nThe views are {', '.join(VIEWS)}." if "Table with name" in str(error) else ""
        raise InvalidSql(f"{error}{views}") from None
    except duckdb.OutOfMemoryException:
        raise InvalidSql(f"the query takes more than {MEMORY_LIMIT} of memory: select fewer days or columns") from None
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
                raise InvalidSql(str(error)) from None
            yield batch


def _with_int64_sums(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the rows with sums of whole numbers as int64 where all values fit. DuckDB computes them in 128 bits.

    Whether the values fit is known only at the last row: a result with such a column is read into memory.
    """
    wide = [index for index, kind in enumerate(rows.schema.types) if pa.types.is_decimal(kind) and kind.scale == 0]
    if not wide:
        return rows
    table = rows.read_all()
    for index in wide:
        try:
            narrow = table.column(index).cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        table = table.set_column(index, table.schema.field(index).name, narrow)
    return table.to_reader()
