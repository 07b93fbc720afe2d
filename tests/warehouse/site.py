"""Data folder and rows for tests of the warehouse."""

import atexit
import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.processes import forked
from warehouse import doctor
from warehouse.columns.filters import Filters
from warehouse.control.policy import Periods
from warehouse.database.transaction import transaction
from warehouse.hotlog import batches, retention
from warehouse.integrity import completeness
from warehouse.lake import delta_table, staging
from warehouse.lake.roots import LocalPath, Root
from warehouse.maintenance import catch_up, compact, load
from warehouse.maintenance.catch_up import Loaded
from warehouse.query import engine
from warehouse.query.snapshot import SnapshotReader
from warehouse.report.reports import Reports
from warehouse.report.results import Query
from warehouse.schema import ASSET_LOADS, HITS, HOT, REQUESTS
from warehouse.tables import ASSET_LOADS_TABLE, EVENTS_TABLE, HITS_TABLE, REQUESTS_TABLE, Spec

if TYPE_CHECKING:
    import duckdb

ROOT = Path(__file__).parents[2]
NOON = datetime(2026, 9, 15, 12, tzinfo=UTC)
TODAY = NOON.date()
DAY = timedelta(days=1)
HOUR_S = 3600
SECRET = b"secret of the store"
DIE_S = 120
"""Timeout of a process that must end itself, in seconds."""
CACHE_BYTES = 128 * 1024 * 1024
VIEWS = pa.schema([("path", pa.string()), *((name, pa.int64()) for name in ("human", "ai", "total"))])
Row = dict[str, Any]


def view(path: str = "/a", ts: datetime = NOON, **columns: Any) -> Row:
    """Return a row of a hot batch; by default a human view of a page of the project `site`."""
    classification = {
        "project_id": "site",
        "traffic": "human",
        "rule": "human",
        "ruleset": "1",
        "user_agent": "",
        "source": "log",
    }
    return {**dict.fromkeys(HOT.names), **classification, "path": path, "ts": ts, "received_at": ts, **columns}


def loads(visitor: int | None = 1, day: date = TODAY, count: int = 1, project: str = "site") -> Row:
    """Return a row of `asset_loads`."""
    return {"project_id": project, "date": day, "visitor": visitor, "loads": count}


def asked(project: str = "site", at: datetime = NOON, **columns: Any) -> Row:
    """Return a row of `requests`."""
    counts = {"requests": 1, "sized": 1, "bytes": 100, "first_seen": at, "last_seen": at}
    key = {"project_id": project, "month": f"{at:%Y-%m}", "date": at.date(), "traffic": "ai", "agent": "GPTBot"}
    return {
        **key,
        "operator": "OpenAI",
        "kind": "page",
        "status": 200,
        "cache": None,
        "ms_below": None,
        **counts,
        "source": "log",
        "path": None,
        "errors": 0,
        **columns,
    }


def event(name: str = "Signup", ts: datetime = NOON, **columns: Any) -> Row:
    """Return an event of a person as a row of a hot batch."""
    values = {"project_id": "site", "path": "/a", "traffic": "human", "source": "server", "interactive": True}
    return {**dict.fromkeys(EVENTS_TABLE.hot.names), **values, "name": name, "ts": ts, **columns}


def column(dimension: str) -> str:
    """Return the column of `hits` of a dimension: utm_source of utmSource."""
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", dimension)


def key(row: Row) -> tuple[Any, ...]:
    """Return the key under which the view `daily_views` counts a row."""
    return row["project_id"], row["ts"].astimezone(UTC).date(), row["path"], row["traffic"], row["agent"]


def hits_of(hot_rows: pa.Table) -> pa.Table:
    """Return rows of hot batches as rows of `hits`, with their UTC day, in the order of a file."""
    dated = hot_rows.add_column(2, HITS.field("date"), hot_rows["ts"].cast(pa.date32()))
    return dated.sort_by([(column, "ascending") for column in HITS_TABLE.order])


@dataclass(frozen=True)
class Ranking:
    """All paths of a views report, with the columns path, human, ai and total, and the totals."""

    paths: pa.Table
    human: int
    ai: int


def rank(reports: Reports, project: str, start: datetime, end: datetime | None, now: datetime) -> Ranking:
    """Return the views report of the newest snapshot."""
    query = Query(project, start, end, Filters(), now)
    totals, batches = reports.all_views(reports.take(), query)
    tables = [VIEWS.empty_table(), *(pa.table(batch).select(VIEWS.names) for batch in batches)]
    return Ranking(pa.concat_tables(tables), totals.human, totals.ai)


class Site:
    """A data folder with a hot log and a lake, with shortcuts to write and read it."""

    def __init__(self, folder: Path, *, is_new: bool = True, root: Root | None = None) -> None:
        self.hot_log, self.spill = folder / "hot.sqlite", folder / "spill"
        self.root, self.opened = root or LocalPath(folder / "lake"), ExitStack()
        if is_new:
            _create_lake(self.root)
        self.hot = batches.connect(self.hot_log)
        if is_new:
            completeness.register_hot_log(self.hot, self.root)

    @cached_property
    def database(self) -> "duckdb.DuckDBPyConnection":
        """Return a database, which is created by its first use: that takes 15 ms, and many tests need none."""
        return engine.connect(self.spill)

    @classmethod
    def after(cls, prepare: "Callable[[Site], object]", folder: Path) -> "Site":
        """Return a site after a function that runs once per process: each call copies the data folder that it left."""
        shutil.copytree(_prepared(prepare), folder, dirs_exist_ok=True)
        return cls(folder, is_new=False)

    def copies(self, folder: Path, run: Callable[[catch_up.OnPoint], object]) -> list[tuple[str, Path]]:
        """Run an operation; return each of its points with a copy of the data folder, as a kill there leaves it."""
        copies: list[tuple[str, Path]] = []

        def copy(point: str) -> None:
            copies.append((point, folder / f"{len(copies)} {point}"))
            shutil.copytree(self.hot_log.parent, copies[-1][1])

        run(copy)
        return copies

    def post(self, *rows: Row) -> None:
        """Commit one batch."""
        batches.append(self.hot, pa.RecordBatch.from_pylist(rows, HOT), NOON.timestamp())

    def post_loads(self, *loads: Row) -> None:
        """Commit one batch of loads of assets."""
        batch = pa.RecordBatch.from_pylist(loads, ASSET_LOADS)
        batches.append(self.hot, batch, NOON.timestamp(), ASSET_LOADS_TABLE)

    def post_requests(self, *requests: Row) -> None:
        """Commit one batch of requests."""
        batches.append(self.hot, pa.RecordBatch.from_pylist(requests, REQUESTS), NOON.timestamp(), REQUESTS_TABLE)

    def post_events(self, *events: Row) -> None:
        """Commit one batch of events."""
        batch = pa.RecordBatch.from_pylist(events, EVENTS_TABLE.hot)
        batches.append(self.hot, batch, NOON.timestamp(), EVENTS_TABLE)

    def stage(
        self, rows: Sequence[Row], loads: Sequence[Row] = (), asked: Sequence[Row] = (), events: Sequence[Row] = ()
    ) -> None:
        """Commit one batch whose rows are in files."""
        tables = {
            HITS_TABLE: pa.Table.from_pylist(rows, HOT),
            ASSET_LOADS_TABLE: pa.Table.from_pylist(loads, ASSET_LOADS),
            REQUESTS_TABLE: pa.Table.from_pylist(asked, REQUESTS),
            EVENTS_TABLE: pa.Table.from_pylist(events, EVENTS_TABLE.hot),
        }
        staged = staging.stage(self.root, tables)
        staging.sync(self.root, staged)
        with transaction(self.hot):
            batches.append_staged(self.hot, staged, NOON.timestamp())

    def load(self, on_point: catch_up.OnPoint = lambda point: None) -> Loaded:
        return load.load(self.hot, self.root, 0, on_point)

    def expire(self) -> None:
        """Delete all loaded batches from the hot log, as if the time for which they are retained had passed."""
        retention.delete_due(self.hot, time.time() + retention.AS_OF_S, retention.RETAINED_BYTES_MAX)

    @property
    def share(self) -> engine.Share:
        return engine.Share(self.spill)

    def compact(self, small_files_max: int = 1) -> compact.Compacted:
        choose = partial(compact.whole, small_files_max=small_files_max)
        return compact.compact(self.hot, self.root, self.share, 0, choose)

    def table(self, spec: Spec) -> DeltaTable:
        return delta_table.open_table(self.root, spec)

    def state(self, spec: Spec) -> delta_table.State:
        return delta_table.state(self.table(spec), spec, batches.node_id(self.hot))

    def stored(self, spec: Spec) -> list[Row]:
        """Return the rows of a table as the Delta library reads them, independently of our own file lists.

        Its query engine takes half of the processor time of `DeltaTable.to_pyarrow_table`.
        """
        query = QueryBuilder().register("stored", self.table(spec))
        query.execute("SET datafusion.execution.target_partitions = 1")  # else the order of the files varies
        rows: list[Row] = pa.table(query.execute("SELECT * FROM stored")).to_pylist()
        return rows

    def event_ids(self) -> list[str]:
        return sorted(row["event_id"] for row in self.stored(HITS_TABLE))

    def daily_views(self) -> Counter[tuple[Any, ...]]:
        """Return the number of stored hits of each key."""
        return Counter(map(key, self.stored(HITS_TABLE)))

    def waiting(self) -> int:
        """Return the number of rows that wait in the hot log."""
        return batches.backlog(self.hot).rows

    def reports(self, policy_of: Callable[[str], Periods] = lambda project: ()) -> Reports:
        self.opened.callback((reader := SnapshotReader(self.hot_log, self.root)).close)
        return Reports(reader, self.root, self.spill, CACHE_BYTES, policy_of)

    def age(self) -> None:
        """Set the times of all files and of the tables' logs to two hours ago."""
        then_s = time.time() - 2 * HOUR_S
        for log in self.root.glob("*/_delta_log/*.json"):
            actions = [json.loads(line) for line in log.read_text().splitlines()]
            for action in actions:
                if "remove" in action:
                    action["remove"]["deletionTimestamp"] = int(then_s * 1000)
            log.write_text("\n".join(map(json.dumps, actions)))
        for path in self.root.rglob("*"):
            os.utime(path, (then_s, then_s))

    def faults(self) -> list[str]:
        """Return the faults that the doctor finds."""
        findings = doctor.examine(self.hot_log, self.root, self.spill, 0)
        return [finding.fault for finding in findings if finding.fault is not None]

    def close(self) -> None:
        self.opened.close()
        self.hot.close()
        if "database" in vars(self):
            self.database.close()


def _lasting_folder() -> Path:
    """Return a folder that is removed when the process ends.

    A TemporaryDirectory would be removed by each child that `multiprocessing` forks, which since Python 3.13 clears the
    functions of `atexit` and with them the only reference.
    """
    folder = mkdtemp(prefix="readership-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    atexit.register(shutil.rmtree, folder)
    return Path(folder)


@cache
def _empty_lake() -> Path:
    """Create an empty lake, once per process. A copy takes 1 ms of processor time, and the creation 12 ms."""
    folder = _lasting_folder()
    delta_table.create(LocalPath(folder))
    return folder


@cache
def _prepared(prepare: Callable[[Site], object]) -> Path:
    folder = _lasting_folder()
    with closing(Site(folder)) as site:
        prepare(site)
    return folder


def _create_lake(root: Root) -> None:
    if root.uri is None and not root.exists():
        shutil.copytree(_empty_lake(), root.local, copy_function=shutil.copyfile)
    else:
        root.make_folder()
        delta_table.create(root)


def some_rows(first: int, count: int) -> list[Row]:
    """Return rows of three days, three paths, people, two AI agents and a bot, each with its own event id."""
    visitors = [("human", None), ("ai", "GPTBot"), ("ai", "ClaudeBot"), ("bot", None)]
    return [
        view(
            path=f"/{number % 3}",
            ts=NOON + number % 3 * DAY + timedelta(microseconds=number),
            traffic=visitors[number % 4][0],
            agent=visitors[number % 4][1],
            event_id=f"event-{number:06d}",
        )
        for number in range(first, first + count)
    ]


AND_DIE = """
import os, signal, sys
from contextlib import closing
from warehouse.lake.roots import LocalPath
from warehouse.hotlog import batches
from warehouse.maintenance import erase, load
from warehouse.query import engine
folder, fatal, passes = LocalPath(sys.argv[1]), sys.argv[2], int(sys.argv[3])
hot, root, database = batches.connect(folder / "hot.sqlite"), folder / "lake", engine.connect(folder / "spill")
share = engine.Share(folder / "spill")

def on_point(step):
    global passes
    if step == fatal:
        if passes == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        passes -= 1

"""


def die_at(site: Site, call: str, step: str, passes: int = 0) -> None:
    """Run a call in another process, which kills itself at the step after it has passed the step `passes` times."""
    process = forked.start(AND_DIE + call, [site.root.parent, step, passes])
    assert process.wait(DIE_S) == -signal.SIGKILL
