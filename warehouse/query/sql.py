"""An owner's own questions, in DuckDB's SQL, over the views `hits`, `daily_views` and `agents` of one moment."""

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import InvalidSql, NoData
from warehouse.folder import HOT_LOG, LAKE, RUN
from warehouse.integrity import completeness
from warehouse.lake.agents_file import AGENTS_FILE
from warehouse.query import engine, sql_views
from warehouse.query.snapshot import Reader

MEMORY_LIMIT = "1GB"
"""Of one connection: half a million hot rows take 0.2 GB of it, and a median cannot be spilled."""
BATCH_ROWS = 8_192
"""Of an answer that are held at once: some 3 MB of whole hits."""
ONE = "one SELECT, DESCRIBE, SHOW or SUMMARIZE is taken"
INSTEAD = {
    duckdb.StatementType.MULTI: "name the values of a PIVOT, as in PIVOT daily_views ON traffic IN ('human', 'ai')",
    duckdb.StatementType.EXPLAIN: "EXPLAIN works on warehouse.connect(), see docs/analysis.md",
}
CHANGES = "nothing here is changed by SQL"
VIEWS = ("hits", "daily_views", "agents")


def connect(data: str | PathLike[str]) -> duckdb.DuckDBPyConnection:
    """The views of a data folder at this moment, on a database that opens no file but theirs.

    Raises:
        NoData: nothing of Readership is in the folder. Nothing is made there.
        DataIncomplete: the hot log is missing or older than the lake.
    """
    folder = Path(data).absolute()
    hot_log, lake, agents = folder / HOT_LOG, folder / LAKE, folder / LAKE / AGENTS_FILE
    completeness.require_identity(hot_log, lake)
    if not hot_log.is_file() or not agents.is_file():
        raise NoData(f"there is no data in {folder}: name the folder that `readership serve` keeps its data in")
    with closing(Reader(hot_log, lake)) as reader:
        snapshot = reader.take()
    database = engine.connect(folder / RUN / "spill", MEMORY_LIMIT)
    try:
        sql_views.keep(database, snapshot, pq.read_table(agents))
        engine.lock(database, (*snapshot.hits.files, *snapshot.daily_views.files))
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def answer(data: str | PathLike[str], sql: str) -> Iterator[pa.RecordBatchReader]:
    """The rows that one SELECT, DESCRIBE, SHOW or SUMMARIZE gives, hot rows included, as DuckDB makes them.

    Raises:
        NoData: see `connect`.
        InvalidSql: it is not one of these, or DuckDB does not take it; with DuckDB's own words. Of a value that cannot
            be computed, the reader raises it, when it comes to that row.
    """
    with closing(connect(data)) as database:
        with _explained():
            statements = database.extract_statements(sql)
            types = [statement.type for statement in statements]
            if types != [duckdb.StatementType.SELECT]:
                raise InvalidSql(f"{ONE}; {INSTEAD.get(types[0], CHANGES) if len(types) == 1 else CHANGES}")
            # A WITH may hold a COPY or DELETE, and the whole is then still typed SELECT; but not in another SELECT.
            database.sql("FROM query(?)", params=[sql])
            rows = database.sql(sql).to_arrow_reader(BATCH_ROWS)
        with closing(_read(rows)) as batches:  # left open by an error, it outlives DuckDB, which complains
            yield _plain(pa.RecordBatchReader.from_batches(rows.schema, batches))


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except duckdb.CatalogException as error:
        views = f"\n\nThe views are {', '.join(VIEWS)}." if "Table with name" in str(error) else ""
        raise InvalidSql(f"{error}{views}") from None
    except duckdb.OutOfMemoryException:
        raise InvalidSql(f"this takes more than {MEMORY_LIMIT} of memory: ask about fewer days or columns") from None
    except duckdb.OperationalError:
        raise  # a file or the disk, and not the question
    except duckdb.Error as error:
        raise InvalidSql(f"{ONE}; {CHANGES}" if "must be at the top level" in str(error) else str(error)) from None


def _read(rows: pa.RecordBatchReader) -> Generator[pa.RecordBatch, None, None]:
    with _explained():
        while True:
            try:
                batch = rows.read_next_batch()
            except StopIteration:
                return
            except OSError as error:  # as Arrow hands on any error of DuckDB's, past the first rows
                raise InvalidSql(str(error)) from None
            yield batch


def _plain(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The sums of whole numbers, which DuckDB gives 128 bits, as the 64 that every reader has, where they fit.

    Whether they do is only known of all of them, so that an answer with such a column is held whole.
    """
    wide = [index for index, kind in enumerate(rows.schema.types) if pa.types.is_decimal(kind) and kind.scale == 0]
    if not wide:
        return rows
    whole = rows.read_all()
    for index in wide:
        try:
            narrow = whole.column(index).cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        whole = whole.set_column(index, whole.schema.field(index).name, narrow)
    return whole.to_reader()
