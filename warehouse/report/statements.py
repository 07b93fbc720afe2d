"""Statements over the cells of a snapshot, fast ones in one database and slow ones in another."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from warehouse import encoding
from warehouse.columns.dimensions import MEASURES, TOGETHER, TOGETHER_IN_VISITS
from warehouse.columns.sources import NAME, TRAFFIC
from warehouse.errors import SlowReport, SpillFull
from warehouse.plural import counted
from warehouse.query import engine
from warehouse.query.result_cache import ResultCache
from warehouse.query.snapshot import HOT_COLUMNS, Snapshot
from warehouse.report import cells
from warehouse.report.cells import SHARED_ROWS_MAX, SPILLED_PATH_BYTES, Cells, Scope, SharedRows
from warehouse.rollups.catalog import ChosenRollups
from warehouse.rollups.ranked import Ranking
from warehouse.tables import ASSET_LOADS_TABLE, EVENTS_TABLE, HITS_TABLE

SLOW_MEMORY, SLOW_THREADS = "256MB", 2
"""Memory and threads of the database of slow reports. More threads need more memory for 2M paths of 200 characters,
and more memory saves no time: these reports spill."""
SPILL_LIMIT = "8GiB"
"""Disk space of slow reports: 16 open exports of 2,000,000 paths of 200 characters."""
VIEWS = ", ".join(f"coalesce(sum(views) FILTER (traffic = '{traffic}'), 0)::BIGINT AS {traffic}" for traffic in TRAFFIC)
"""SQL of the columns human, ai and bot, which add up cells with the columns `traffic` and `views`."""
_SUMS = ", ".join(VIEWS.replace("views", each.name).replace(" AS ", f" AS {each.name}_") for each in MEASURES)
_COUNT = f"SELECT {{by}}, grouping_id({{by}}) AS absent, {_SUMS} FROM {{cells}} GROUP BY GROUPING SETS ({{sets}})"
_SHARED = f"""
SELECT {", ".join(name for name in HOT_COLUMNS if name not in {"user_agent", "referrer"})}, date FROM {{rows}}
WHERE project_id = $project AND ts >= $start AND ts < $end {{of_path}} LIMIT {SHARED_ROWS_MAX + 1}
"""
METADATA_BYTES_MAX = 64 * 1024 * 1024
"""Memory of the metadata of files above which the database of fast statements is replaced, in bytes. DuckDB caches
36 kB for each file of a load, up to the database's memory limit."""
METADATA_CHECKED_EVERY = 1_000
"""Number of fast statements after which this memory is read, which takes 1 ms."""
METADATA_BYTES = "SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'OBJECT_CACHE'"
Relations = Mapping[str, pa.Table | str]
"""Tables in memory, and table functions, by the names that a statement has for them."""
_BATCH = "FROM report WHERE rowid >= ? AND rowid < ?"


class Statements:
    """Statements of the reports of one process, with their cache. Safe to call from several threads."""

    def __init__(
        self,
        spill: Path,
        cached: ResultCache,
        rollups: Callable[[Snapshot], ChosenRollups],
        ranking: Callable[[], Ranking | None],
    ) -> None:
        """Create `fast`, the database of fast statements. The other one is created by the first slow statement.

        `rollups` returns the rollups that cover the files of a snapshot, and `ranking` the newest ranking of paths.
        """
        self._spill, self._read = spill, count(1)
        self.fast = _connect_fast(spill)
        self.cached, self.rollups, self.ranking = cached, rollups, ranking
        self._alone, self._creation = threading.Lock(), threading.Lock()
        self._created: duckdb.DuckDBPyConnection | None = None
        self._failed = set[str | tuple[str, ...]]()  # projects whose last report needed more memory than SLOW_MEMORY

    def counts(self, snapshot: Snapshot, scope: Scope, *by: str, measure: str = "views") -> pa.Table:
        """Return the page views by one or more dimensions: these columns, human, ai and bot, without rows of zeros.

        `source` is one of the names. One statement counts dimensions that a page shows together, all measures, and all
        readers. `measure` is one of MEASURES.
        """
        shown = TOGETHER_IN_VISITS if scope.filters.of_visits else TOGETHER
        every = ((sets, each) for sets in shown for each in sets if {*each}.issuperset(by))
        sets, counted = next(every, ((by,), by))
        columns = dict.fromkeys(chain(*sets))
        traffic, of_all = scope.filters["traffic"], replace(scope, filters=scope.filters.but(traffic=None))

        def fetch() -> pa.Table:
            names = ["sources" if name == "source" else name for name in columns]
            chosen = cells.select(snapshot, self.rollups(snapshot), of_all, dict.fromkeys([*names, "traffic"]))
            of_source = f"(SELECT *, {NAME} AS source FROM {chosen.sql})" if "source" in columns else chosen.sql
            grouped = ", ".join(f"({', '.join(each)})" for each in sets)
            sql = _COUNT.format(by=", ".join(columns), cells=of_source, sets=grouped)
            return self.fetch(snapshot, of_all, chosen, sql)

        rows = self.cached((of_all, *columns, snapshot.rows_key), fetch)
        absent = sum(1 << number for number, name in enumerate(reversed(columns)) if name not in counted)
        sums = [f"{measure}_{name}" for name in TRAFFIC]
        rows = rows.filter(pc.field("absent") == absent).group_by([*by], use_threads=False)
        rows = rows.aggregate([(name, "sum") for name in sums]).rename_columns([*by, *TRAFFIC])
        rows = rows.filter((pc.field("human") > 0) | (pc.field("ai") > 0) | (pc.field("bot") > 0))
        return _of_readers(rows, traffic) if traffic else rows

    def fetch(
        self,
        snapshot: Snapshot,
        scope: Scope,
        chosen: Cells,
        sql: str,
        more: Mapping[str, pa.Table] | None = None,
        **values: Any,
    ) -> pa.Table:
        """Return the rows of a statement over cells, and over `more` tables by name.

        `values` are bound beside the cells' own values.

        A statement that needs more memory than fast ones have is a slow one.

        Raises:
            SlowReport: the statement is slow, and the caller accepts only a fast report.
            SpillFull
        """
        relations = {**self._relations(snapshot, scope, chosen, sql), **(more or {})}
        if not chosen.is_slow:
            with suppress(duckdb.OutOfMemoryException), self._cursor(scope, relations, is_slow=False) as cursor:
                return engine.fetch(cursor, sql, chosen.bound | values)
        with self._cursor(scope, relations, is_slow=True) as cursor:
            return _fetch_slow(cursor, chosen, sql, chosen.bound | values)

    def batches(
        self, snapshot: Snapshot, scope: Scope, chosen: Cells, sql: str, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows of a statement in batches: from a table that spills, if they are slow to read or large."""
        if not chosen.is_slow and chosen.path_bytes <= SPILLED_PATH_BYTES:
            return iter(self.fetch(snapshot, scope, chosen, sql).combine_chunks().to_batches(batch_rows))
        batches = self._spilled(snapshot, scope, chosen, sql, batch_rows)
        return chain(list(islice(batches, 1)), batches)  # an error of the statement is raised here

    def _spilled(
        self, snapshot: Snapshot, scope: Scope, chosen: Cells, sql: str, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        relations = self._relations(snapshot, scope, chosen, sql)
        with self._slow.cursor() as cursor:  # a temporary table belongs to its cursor
            _register(cursor, relations)
            with self._turn(scope.project), engine.interruptible(cursor):
                _fetch_slow(cursor, chosen, f"CREATE TEMP TABLE report AS {sql}", chosen.bound)
            for start in count(step=batch_rows):
                with self._turn(scope.project), engine.interruptible(cursor):
                    rows = cursor.sql(_BATCH, params=[start, start + batch_rows]).to_arrow_table()
                if not rows.num_rows:
                    return
                yield from rows.to_batches()

    @contextmanager
    def _cursor(self, scope: Scope, relations: Relations, *, is_slow: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        if is_slow:
            with self._turn(scope.project), engine.interruptible_cursor(self._slow) as cursor:
                _register(cursor, relations)
                yield cursor
        else:
            with engine.reader(self.fast) as cursor:
                _register(cursor, relations)
                yield cursor
            if next(self._read) % METADATA_CHECKED_EVERY == 0:
                self._bound_metadata()

    @property
    def _slow(self) -> duckdb.DuckDBPyConnection:
        with self._creation:
            if self._created is None:  # it takes 0.04 s, and most processes compute no slow report
                self._created = engine.connect(self._spill, SLOW_MEMORY, SLOW_THREADS)
                self._created.execute(f"SET max_temp_directory_size = '{SPILL_LIMIT}'")  # ignored in the configuration
            return self._created

    def _bound_metadata(self) -> None:
        with self.fast.cursor() as cursor:
            ((size,),) = cursor.execute(METADATA_BYTES).fetchall()
        if size > METADATA_BYTES_MAX:
            self.fast = _connect_fast(self._spill)  # the last cursor of the other one closes it

    def _relations(self, snapshot: Snapshot, scope: Scope, chosen: Cells, sql: str) -> Relations:
        """Return the relations that a statement names: the waiting rows, and shared rows, if few, in memory.

        Registering a table takes 1 ms.
        """
        relations: dict[str, pa.Table | str] = {"hot": snapshot.hot} if "FROM hot" in sql else {}
        of_beside = {"hot_loads": ASSET_LOADS_TABLE, "hot_events": EVENTS_TABLE}
        relations |= {name: snapshot.beside(spec).hot for name, spec in of_beside.items() if name in sql}
        for number, rows in enumerate(chosen.shared):
            name = cells.relation_of(number)
            relations[name] = engine.rows(HITS_TABLE, rows.files)
            with suppress(duckdb.OutOfMemoryException):
                table = self.cached(("rows", scope.project, rows), partial(self._read_shared, scope, rows))
                if table.num_rows <= SHARED_ROWS_MAX:
                    relations[name] = table
        return relations

    def _read_shared(self, scope: Scope, rows: SharedRows) -> pa.Table:
        """Return shared rows, or columns of no more than the first ones if there are more than SHARED_ROWS_MAX."""
        bound = {
            "project": scope.project,
            "start": rows.time_range.start,
            "end": rows.time_range.end,
            **({"path": rows.path} if rows.path else {}),
        }
        sql = _SHARED.format(rows=engine.rows(HITS_TABLE, rows.files), of_path="AND path = $path" if rows.path else "")
        with self._cursor(scope, {}, is_slow=False) as cursor:
            table = engine.fetch(cursor, sql, bound)
        if table.num_rows > SHARED_ROWS_MAX:
            return table.select([]).append_column("row", pa.nulls(table.num_rows))
        return pa.table({name: encoding.encoded(table[name]) for name in table.column_names})

    @contextmanager
    def _turn(self, project: str | tuple[str, ...]) -> Iterator[None]:
        """Run a slow statement while others wait."""
        caller = engine.CALLER.get()
        if not caller.accepts_slow:
            raise SlowReport
        caller.is_slow = True
        with self._alone:
            try:
                yield
            except duckdb.OutOfMemoryException as error:
                if "max_temp_directory_size" in str(error):
                    raise SpillFull(SPILL_LIMIT) from None
                self._failed.add(project)
                raise
            self._failed.discard(project)

    @property
    def warning(self) -> str | None:
        """Return the warning about projects without some reports."""
        if not self._failed:
            return None
        return f"reports of {counted(len(self._failed), 'project')} need more memory than they may use"

    def close(self) -> None:
        self.fast.close()
        if self._created is not None:
            self._created.close()


def _fetch_slow(cursor: duckdb.DuckDBPyConnection, chosen: Cells, sql: str, values: Mapping[str, object]) -> pa.Table:
    """Return the rows of a statement. DuckDB 2.0 spills groups of the rows of a table, but not of a union."""
    try:
        return engine.fetch(cursor, sql, values)
    except duckdb.OutOfMemoryException as error:
        if "max_temp_directory_size" in str(error):
            raise
        engine.fetch(cursor, f"CREATE TEMP TABLE chosen_cells AS FROM {chosen.sql}", values)
        return engine.fetch(cursor, sql.replace(chosen.sql, "chosen_cells"), values)


def _connect_fast(spill: Path) -> duckdb.DuckDBPyConnection:
    database = engine.connect(spill)
    database.execute("SET GLOBAL parquet_metadata_cache = true")
    # The files are never changed. With validation, a statement over 12 files takes 2 ms more.
    database.execute("SET GLOBAL validate_external_file_cache = 'NO_VALIDATION'")
    return database


def _register(cursor: duckdb.DuckDBPyConnection, relations: Relations) -> None:
    for name, relation in relations.items():
        if isinstance(relation, str):
            cursor.execute(f"CREATE TEMP VIEW {name} AS FROM {relation}")
        else:
            cursor.register(name, relation)


def _of_readers(rows: pa.Table, traffic: str) -> pa.Table:
    """Return the rows of counts that a filter by traffic leaves: the other columns become zero."""
    rows = rows.filter(pc.field(traffic) > 0)
    for name in TRAFFIC:
        if name != traffic:
            rows = rows.set_column(rows.column_names.index(name), name, pa.repeat(0, len(rows)))
    return rows


def without_waiting(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of the files alone, whose results stay valid while hits arrive."""
    moment = replace(snapshot.moment, last_id=0, generation=0)
    return replace(snapshot, moment=moment, hot=snapshot.hot.slice(0, 0))
