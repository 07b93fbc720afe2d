"""Small lakes by Hypothesis, and what `model` counts in them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.warehouse.report.laws import generated, model
from tests.warehouse.rollups.writing import write_rollup
from tests.warehouse.site import NOON, Row, loads, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods
from warehouse.lake.delta_table import File
from warehouse.lake.roots import LocalPath
from warehouse.query.moment import Moment
from warehouse.query.snapshot import HOT_COLUMNS, Snapshot
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.cells import Scope
from warehouse.report.results import Listing, Query
from warehouse.report.statements import Statements
from warehouse.rollups import catalog, ranked
from warehouse.rollups.catalog import ChosenRollups
from warehouse.schema import HITS, HOT
from warehouse.tables import HITS_TABLE, VISITOR_TABLES, Spec

MIDNIGHT = NOON - timedelta(hours=12)
RANKS = (1, 2, 4)
"""Numbers of first ranks that a page reads: few, so that small lakes have paths beyond them."""
EVERYTHING = Scope("site", TimeRange(), Filters())
AGENTS = [
    {"traffic": "human", "rule": "human", "browser": "Firefox", "os": "Linux"},
    {"traffic": "human", "rule": "human", "device": "phone"},
    {"traffic": "ai", "rule": "ai:GPTBot", "agent": "GPTBot", "operator": "OpenAI", "purpose": "training"},
    {"traffic": "ai", "rule": "ai:ClaudeBot", "agent": "ClaudeBot", "operator": "Anthropic", "purpose": "training"},
    {"traffic": "bot", "rule": "bot:empty"},
    {"traffic": "bot", "rule": "bot:Googlebot", "agent": "Googlebot"},
]
TIMES = st.datetimes(datetime(2026, 8, 30), datetime(2026, 10, 2), timezones=st.just(UTC))  # noqa: DTZ001
"""Instants in three months."""
NEAR_MIDNIGHT = st.builds(
    lambda days, microseconds: MIDNIGHT + timedelta(days=days, microseconds=microseconds),
    st.integers(-16, 17),
    st.integers(-1, 1),
)
ROWS = st.builds(
    lambda agent, **columns: view(**{**columns, **agent}),
    agent=st.sampled_from(AGENTS),
    path=st.sampled_from(["/", "/a", "/a/b", "/ab", "/é"]),
    ts=TIMES | NEAR_MIDNIGHT,
    project_id=st.sampled_from(["site", "site", "another"]),
    source=st.sampled_from(["beacon", "server", "log"]),
    referrer_host=st.sampled_from([None, "example.org", "éxample.org", "Example.org"]),
    utm_source=st.sampled_from([None, "", "letter"]),
    format=st.sampled_from([None, "html", "markdown"]),
    status=st.sampled_from([None, 200, 404]),
    user_agent=st.sampled_from(["", "Firefox/1"]),
    verification=st.sampled_from([None, "verified", "not_checked"]),
)
SEEN = st.builds(
    lambda row, visitor, referrer: {**row, "visitor": visitor, "referrer": referrer},
    ROWS,
    st.sampled_from([None, 1, 2]),
    st.sampled_from(generated.REFERRERS),
)
"""Rows of readers that may be known, with links within the site."""
LOADS = st.lists(
    st.builds(
        lambda day, **columns: loads(day=(MIDNIGHT + timedelta(days=day)).date(), **columns),
        st.sampled_from([-16, -15, -1, 0, 0, 1]),
        visitor=st.sampled_from([None, 0, 1, 2, 10]),
        project=st.sampled_from(["site", "site", "another"]),
    ),
    max_size=6,
)
POLICIES: list[Periods] = [
    (Period(date.min, "confirmed_people"),),
    (Period(date(2026, 9, 14), "confirmed_people"), Period(date(2026, 9, 16), "log_only")),
    (Period(date.min, "beacon_only"),),
    (Period(date.min, "beacon_people_log_machines"),),
    (Period(date(2026, 9, 1), "beacon_only"), Period(date(2026, 9, 15), "log_only"), Period(date(2026, 9, 16), "all")),
    (Period(date(2026, 9, 15), "beacon_people_log_machines"), Period(date(2026, 10, 1), "log_only")),
]
VALUES = [
    *(("path", path) for path in ("/a", "/a*", "**", "*b*", "/nothing")),
    *(("traffic", traffic) for traffic in model.TRAFFIC),
    *(("agent", agent) for agent in ("GPTBot", "Googlebot")),
    *(("operator", "OpenAI"), ("purpose", "training"), ("source", "beacon"), ("source", "log")),
    *(("verification", "not_checked"), ("verification", "verified"), ("rule", "human"), ("rule", "ai:GPTBot")),
    *(("referrerHost", "example.org"), ("utmSource", ""), ("browser", "Firefox"), ("os", "Linux")),
    *(("device", "phone"), ("format", "markdown"), ("status", "200"), ("status", "301")),
    *((name, path) for name in ("entryPage", "exitPage") for path in ("/a", "/a", "/", "/*", "*b*", "/nothing")),
    *(("evidence", each) for each in ("script", "assets", "navigation", "none", "not_measured")),
]
"""Values of filters."""
FILTERS = st.builds(
    lambda policy, some: Filters(policy, **dict(some)),
    st.sampled_from([(), (), *POLICIES]),
    st.lists(st.sampled_from(VALUES), max_size=2),
)
RANGES = st.builds(
    lambda first, second: TimeRange(min(first, second), max(first, second)),
    TIMES | NEAR_MIDNIGHT | st.just(FIRST),
    TIMES | NEAR_MIDNIGHT | st.just(LAST),
)
SCOPES = st.builds(Scope, st.just("site"), RANGES, FILTERS)
Counts = dict[Any, list[int]]
"""Views of people, AI agents and other bots by a key."""


@dataclass
class SmallLake:
    """Files of `hits` and `asset_loads`, waiting rows, rollups and a ranking of paths, read without a cache."""

    root: LocalPath
    database: duckdb.DuckDBPyConnection
    statements: Statements
    files: list[File] = field(default_factory=list)
    waiting: pa.Table = field(default_factory=lambda: hot([]))
    beside: dict[Spec, list[File]] = field(default_factory=lambda: {spec: [] for spec in VISITOR_TABLES})
    waiting_beside: dict[Spec, pa.Table] = field(
        default_factory=lambda: {spec: spec.hot.empty_table() for spec in VISITOR_TABLES}
    )

    @property
    def snapshot(self) -> Snapshot:
        moment = Moment(1, 1, 0, 0)

        def beside(spec: Spec) -> Snapshot:
            return Snapshot(moment, tuple(self.beside[spec]), self.waiting_beside[spec])

        return Snapshot(moment, tuple(self.files), self.waiting, beside)

    @property
    def coverage(self) -> ChosenRollups:
        return catalog.choose(self.root, self.files)

    def write_rollups(self, *, with_ranking: bool = True) -> None:
        """Write one rollup for each month of the files, and the ranking of all rollups."""
        for month in sorted({file.partition[:7] for file in self.files}):
            of_month = [file for file in self.files if file.partition[:7] == month]
            beside = {spec: [file for file in of if file.partition[:7] == month] for spec, of in self.beside.items()}
            write_rollup(self.root, self.database, month, of_month, beside=beside)
        if with_ranking:
            ranked.write(self.root, self.database, self.coverage.parts, RANKS)

    def add(self, rows: Sequence[Row], name: str) -> None:
        """Write a file of `hits` for each day of the rows."""
        self.files = [*self.files, *write_hits(self.root / "hits", rows, name)]

    def add_beside(self, spec: Spec, rows: Sequence[Row], name: str) -> None:
        """Write a file of another table for each day of the rows."""
        for day in {row["date"] for row in rows}:
            path = Path(self.root / spec.name / f"date={day}" / f"{name}-{spec.name}.parquet")
            path.parent.mkdir(parents=True, exist_ok=True)
            of_day = pa.Table.from_pylist([row for row in rows if row["date"] == day], spec.schema)
            pq.write_table(of_day.drop_columns("date"), path)
            self.beside[spec].append(File(str(path), str(day), path.stat().st_size, len(of_day)))

    def wait_beside(self, spec: Spec, rows: Sequence[Row]) -> None:
        """Let rows of another table wait for the lake."""
        self.waiting_beside[spec] = pa.Table.from_pylist([*rows], spec.hot)

    def empty_covered_files(self) -> None:
        """Take the rows out of the files that the rollups count, to recognise reports that read them."""
        uncovered = self.coverage.uncovered
        for file in self.files:
            if file not in uncovered:
                pq.write_table(pq.read_table(file.path, partitioning=None).slice(0, 0), file.path)

    def counts(self, scope: Scope, *by: str, is_covered: bool = True) -> Counts:
        """Return the counts by some dimensions, with rollups or without them."""
        self.use(is_covered=is_covered)
        rows = self.statements.counts(self.snapshot, scope, *by).to_pylist()
        counted = {tuple(row[name] for name in by): [row[name] for name in model.TRAFFIC] for row in rows}
        assert len(counted) == len(rows)
        return counted

    def use(self, *, is_covered: bool = True) -> Statements:
        """Return the statements, which then read this lake."""
        covered = self.coverage if is_covered else ChosenRollups((), tuple(self.files))
        ranking = ranked.find(self.root) if is_covered else None
        self.statements.rollups, self.statements.ranking = lambda snapshot: covered, lambda: ranking
        return self.statements


LakeIn = Callable[[Path], SmallLake]
"""Function that creates a lake in a folder."""


def matching(rows: Iterable[Row], scope: Scope) -> list[Row]:
    """Return the rows that a report counts."""
    assert isinstance(scope.project, str)
    start, end = scope.time_range.start, scope.time_range.end
    return model.matching(rows, Query(scope.project, start, end, scope.filters, end))


def counts(rows: Iterable[Row], scope: Scope, key: Callable[[Row], Any]) -> Counts:
    """Return the numbers of human, AI and bot hits by a key."""
    result: defaultdict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in matching(rows, scope):
        result[key(row)][model.TRAFFIC.index(row["traffic"])] += 1
    return dict(result)


def value(row: Row, by: str) -> Any:
    """Return the value of a dimension, of which some are in no breakdown."""
    match by:
        case "day":
            return row["ts"].date()
        case "quarter":
            return row["ts"].hour * 4 + row["ts"].minute // 15
        case "second":
            return (row["ts"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
        case "userAgent":
            return row["user_agent"]
    return model.value_of(row, by)


def listed(rows: Iterable[Row], scope: Scope, listing: Listing) -> list[tuple[str, int, int, int, int]]:
    """Return the rows of a listing in its order: path, human, ai, bot and total."""

    def is_listed(human: int, ai: int, bot: int) -> bool:
        if listing.audience != "all":
            return (ai > 0 and human == 0) if listing.audience == "ai_only" else (human > 0 and ai == 0)
        return human + ai > 0 or (listing.with_bots and bot > 0)

    counted = counts(rows, scope, lambda row: row["path"]).items()
    result = [(path, *views, views[0] + views[1]) for path, views in counted if is_listed(*views)]
    index = ("path", "human", "ai", "bot", "total").index(listing.order)
    return sorted(result, key=lambda row: (0 if index == 0 else -int(row[index]), row[0].encode()))


def hot(rows: Sequence[Row]) -> pa.Table:
    """Return waiting rows of one batch."""
    schema = pa.schema([*map(HOT.field, HOT_COLUMNS), pa.field("batch_id", pa.int64())])
    return pa.Table.from_pylist([{name: {**row, "batch_id": 1}[name] for name in schema.names} for row in rows], schema)


def write_hits(folder: Path, rows: Sequence[Row], name: str) -> list[File]:
    """Write one file of `hits` for each day that has a row, in the folders of a partitioned table."""
    by_day: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_day[row["ts"].date().isoformat()].append({**row, "date": row["ts"].date()})
    files = []
    for day, of_day in sorted(by_day.items()):
        path = folder / f"date={day}" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(of_day, HITS).sort_by([(column, "ascending") for column in HITS_TABLE.order])
        pq.write_table(table.drop_columns("date"), path)
        files.append(File(str(path), day, path.stat().st_size, len(of_day)))
    return files


def query(project: str, period: TimeRange, filters: Filters) -> Query:
    """Return a query of a range with two bounds."""
    return Query(project, period.start, period.end, filters, period.end)
