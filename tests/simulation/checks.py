"""Comparisons of reports, SQL views, plain DuckDB, `doctor` and the files with the model."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random

import duckdb

from ingest.hits.event import DOWNLOAD
from tests.simulation.model import Counts, Fault, Key, Model
from tests.simulation.node import Node
from warehouse import doctor
from warehouse.columns.filters import Filters
from warehouse.errors import MomentExpired
from warehouse.hotlog import batches
from warehouse.hotlog.retention import AS_OF_S
from warehouse.lake import delta_table
from warehouse.query import sql_views
from warehouse.query.moment import Moment
from warehouse.report.audience.events import ChosenEvents
from warehouse.report.results import Query
from warehouse.rollups import catalog
from warehouse.tables import EVENTS_TABLE, HITS_TABLE, TABLES

ANY_DAY = date(2000, 1, 1)
_VIEWS = "SELECT project_id, date, path, traffic, agent, {} FROM {} GROUP BY ALL"
_EVENTS = f"(FROM {{}} WHERE name = if(path LIKE '%.zip', '{DOWNLOAD}', 'Read ' || path))"
_SQL = {"hits": "count(*)", "daily_views": "sum(views)", "errors": "sum(requests)", "events": "count(*)"}
Answer = tuple[int, int, dict[str, tuple[int, int]], dict[tuple[str, str], int]]
"""Views of people and of AI agents: their totals, and by path; and events by path and traffic."""


@dataclass(frozen=True)
class Remembered:
    """An answer whose moment must keep it, with its time and the number of erasures before it."""

    moment: str
    query: Query
    answer: Answer
    taken_s: float
    erasures: int


def query(node: Node, chance: Random, project: str, days: list[date]) -> Query:
    """Return a query of whole days: of all, or from and to random ones."""
    first, last = sorted((chance.choice(days), chance.choice(days))) if days else (ANY_DAY, ANY_DAY)
    if chance.random() < 0.5 or not days:
        first, last = ANY_DAY, node.now.date() + timedelta(days=2)
    start, end = (datetime.combine(day, time(), UTC) for day in (first, last + timedelta(days=1)))
    return Query(project, start, end, Filters(), node.now + timedelta(hours=1))


def views(node: Node, model: Model, asked: Query) -> tuple[str, Answer]:
    """Compare the reports of the newest moment with the model, and return the moment and the answer."""
    moment, answer = _answer(node, asked, None)
    human, ai, paths, events = answer
    observed: Counts = Counter()
    for (path, traffic), number in events.items():
        observed[Key(asked.project, ANY_DAY, path, traffic, None, "events")] = number
    for path, numbers in paths.items():
        for traffic, number in zip(("human", "ai"), numbers, strict=True):
            observed[Key(asked.project, ANY_DAY, path, traffic, None, "hits")] += number

    def of(key: Key) -> Key | None:
        at = datetime.combine(key.day, time(), UTC)
        is_counted = key.project == asked.project and asked.start <= at < (asked.end or at)
        is_counted = is_counted and key.traffic != "bot" and key.view != "errors"
        return key._replace(day=ANY_DAY, agent=None) if is_counted else None

    model.compare(f"the report of {node.name}", observed, of)
    if (human, ai) != tuple(map(sum, zip((0, 0), *paths.values(), strict=True))):
        raise Fault(f"the totals of {node.name} are {human} and {ai}, and its rows have other sums")
    return moment, answer


def _answer(node: Node, asked: Query, as_of: Moment | None) -> tuple[str, Answer]:
    snapshot = node.reports.take(as_of)
    totals, tables = node.reports.all_views(snapshot, asked)
    paths = {row["path"]: (row["human"], row["ai"]) for table in tables for row in table.to_pylist()}
    table = node.reports.events(snapshot, asked, ChosenEvents(by="path"))
    events = {(row["value"], row["traffic"]): row["events"] for row in table.to_pylist()}
    return str(snapshot.moment), (totals.human, totals.ai, paths, events)


def as_of(node: Node, remembered: Remembered, erasures: int) -> None:
    """Compare an answer of an earlier moment with the one that any node gave then."""
    age_s = node.machine.clock.now_s - remembered.taken_s
    try:
        _, answer = _answer(node, remembered.query, Moment.parse(remembered.moment))
    except MomentExpired as error:
        if age_s <= AS_OF_S and erasures == remembered.erasures:
            raise Fault(f"the moment {remembered.moment} is {age_s:.0f} s old and cannot be read: {error}") from error
        return
    if answer != remembered.answer:
        raise Fault(f"the moment {remembered.moment} was answered {remembered.answer}, and now {answer}")


def sql(node: Node, model: Model) -> None:
    """Compare the SQL views, hot rows included, with the model."""
    with node.database.cursor() as cursor:
        sql_views.create_temporary(cursor, node.snapshots.take_all())
        counted = {name: _rows(cursor, name, name, sums) for name, sums in _SQL.items()}
    of_days = {key._replace(view="hits"): number for key, number in counted.pop("daily_views").items()}
    model.compare(f"rows of {node.name}", sum(counted.values(), Counter()))
    model.compare(f"daily_views of {node.name}", Counter(of_days), lambda key: key if key.view == "hits" else None)


def _rows(cursor: duckdb.DuckDBPyConnection, view: str, source: str, sums: str = "count(*)") -> Counts:
    rows = cursor.execute(_VIEWS.format(sums, _EVENTS.format(source) if view == "events" else source)).fetchall()
    return Counter({Key(*key, view): int(number) for *key, number in rows})


def whole(node: Node, model: Model) -> None:
    """Compare the files with the model, by plain DuckDB and by `doctor`. No operation runs and no hit waits."""
    counted: Counts = Counter()
    for spec in (HITS_TABLE, EVENTS_TABLE):
        files = [file.path for file in delta_table.list_files(delta_table.open_table(node.lake, spec), spec)]
        with duckdb.connect() as database:
            source = f"read_parquet({files}, hive_partitioning = true)"
            counted += _rows(database, spec.view, source) if files else Counter()
    model.compare("plain DuckDB over the files", counted, lambda key: None if key.view == "errors" else key)
    faults = [each for each in doctor.examine(node.settings.hot_log, node.lake, node.spill, 0) if each.fault]
    if faults:
        raise Fault(f"doctor: {faults[0].invariant}: {faults[0].fault}")


def no_orphans(node: Node) -> None:
    """Check that each file is in use, after vacuums that are long after the last operation."""
    used, folders = set[str](), []
    for spec in TABLES:
        files = delta_table.list_files(delta_table.open_table(node.lake, spec), spec)
        used |= {file.path for file in files}
        folders.append(node.lake / spec.name)
    orphans = [path for folder in folders for path in folder.glob("*=*/*") if str(path) not in used]
    for month in catalog.list_months(node.lake):
        orphans += [each for each in catalog.list_folders(node.lake, month) if not (each / catalog.COVERAGE).exists()]
    orphans += [path for path in node.folder.rglob("*.new") if path.is_file()]
    hot = node.connections["command"]
    if waiting := batches.backlog(hot).rows:
        raise Fault(f"{waiting} hits wait after a load")
    if orphans:
        raise Fault(f"{orphans[0].relative_to(node.folder)} is never removed, one of {len(orphans)} files")
