"""Plain Python reference of the reports, rows of `hits` by Hypothesis, and files with such rows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.warehouse.report.laws.model import counts_under
from tests.warehouse.site import NOON, Row, view
from warehouse.columns.filters import Filters
from warehouse.control.policy import Period, Periods
from warehouse.lake.delta_table import File
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.cells import Scope
from warehouse.report.results import Listing
from warehouse.schema import HITS, HITS_ORDER, HOT

UNCACHED = ResultCache(0)
"""Cache that stores nothing."""
MIDNIGHT = NOON - timedelta(hours=12)
AGENTS = [
    {"traffic": "human", "rule": "human", "browser": "Firefox", "os": "Linux"},
    {"traffic": "human", "rule": "human", "device": "phone"},
    {"traffic": "ai", "rule": "ai:GPTBot", "agent": "GPTBot", "operator": "OpenAI", "purpose": "training"},
    {"traffic": "ai", "rule": "ai:ClaudeBot", "agent": "ClaudeBot", "operator": "Anthropic", "purpose": "training"},
    {"traffic": "bot", "rule": "bot:empty"},
    {"traffic": "bot", "rule": "bot:Googlebot", "agent": "Googlebot"},
]
COLUMNS = {
    "referrerHost": "referrer_host",
    "utmSource": "utm_source",
    **{name: name for name in "agent operator purpose browser os device format status source rule path".split()},
}
"""Columns of `hits` by the API's names of the breakdowns."""
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
    verification=st.sampled_from([None, "verified", "not_checked"]),
)
POLICIES: list[Periods] = [
    (Period(date.min, "beacon_only"),),
    (Period(date.min, "beacon_people_log_machines"),),
    (Period(date(2026, 9, 1), "beacon_only"), Period(date(2026, 9, 15), "log_only"), Period(date(2026, 9, 16), "all")),
    (Period(date(2026, 9, 15), "beacon_people_log_machines"), Period(date(2026, 10, 1), "log_only")),
]
FILTERS = st.builds(
    Filters,
    path=st.sampled_from([None, None, None, "/a", "/a*", "*", "/nothing"]),
    traffic=st.sampled_from([None, None, "human", "ai", "bot"]),
    agent=st.sampled_from([None, None, None, "GPTBot", "Googlebot"]),
    operator=st.sampled_from([None, None, None, "OpenAI"]),
    purpose=st.sampled_from([None, None, None, "training"]),
    verification=st.sampled_from([None, None, None, "not_checked", "verified"]),
    source=st.sampled_from([None, None, "beacon", "log"]),
    policy=st.sampled_from([(), (), *POLICIES]),
)
RANGES = st.builds(
    lambda first, second: TimeRange(min(first, second), max(first, second)),
    TIMES | NEAR_MIDNIGHT | st.just(FIRST),
    TIMES | NEAR_MIDNIGHT | st.just(LAST),
)
SCOPES = st.builds(Scope, st.just("site"), RANGES, FILTERS)


def verification(row: Row) -> str | None:
    return row["verification"] or (None if row["traffic"] == "human" else "not_checked")


def value(row: Row, by: str) -> str | None:
    """Return the value of a hit in a breakdown."""
    if by == "verification":
        return verification(row)
    column = row[COLUMNS[by]]
    return None if column is None else str(column)


def is_counted(row: Row, scope: Scope) -> bool:
    """Return whether a hit is in the scope of a report."""
    fields = scope.filters.fields
    path = fields.pop("path", None)
    if path is not None and not (row["path"].startswith(path[:-1]) if path.endswith("*") else row["path"] == path):
        return False
    if not scope.time_range.start <= row["ts"] < scope.time_range.end or row["project_id"] != scope.project:
        return False
    return all(
        value(row, name) == wanted if name != "traffic" else row[name] == wanted for name, wanted in fields.items()
    ) and counts_under(row, scope.filters.policy)


def counts(rows: Iterable[Row], scope: Scope, key: Callable[[Row], Any]) -> dict[Any, list[int]]:
    """Return the numbers of human, AI and bot hits by a key."""
    result: defaultdict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        if is_counted(row, scope):
            result[key(row)][("human", "ai", "bot").index(row["traffic"])] += 1
    return dict(result)


def breakdown(rows: Iterable[Row], scope: Scope, by: str) -> list[tuple[str | None, int, int, int, int]]:
    """Return the rows of a breakdown: value, human, ai, bot and total."""
    result = [
        (name, *views, views[0] + views[1]) for name, views in counts(rows, scope, lambda row: value(row, by)).items()
    ]
    return sorted(result, key=lambda row: (-row[4], row[0] is None, (row[0] or "").encode()))


def listed(
    counted: list[tuple[str | None, int, int, int, int]], listing: Listing
) -> list[tuple[str | None, int, int, int, int]]:
    """Return the rows of a listing in its order, from the rows of a breakdown by path."""

    def is_listed(human: int, ai: int, bot: int) -> bool:
        if listing.audience != "all":
            return (ai > 0 and human == 0) if listing.audience == "ai_only" else (human > 0 and ai == 0)
        return human + ai > 0 or (listing.with_bots and bot > 0)

    index = ("path", "human", "ai", "bot", "total").index(listing.order)
    result = [row for row in counted if is_listed(*row[1:4])]
    return sorted(result, key=lambda row: (0 if index == 0 else -int(row[index] or 0), (row[0] or "").encode()))


def hot(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), HOT)


def write_hits(folder: Path, rows: Sequence[Row], name: str) -> list[File]:
    """Write one file of `hits` for each day that has a row, in the folders of a partitioned table."""
    by_day: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_day[row["ts"].date().isoformat()].append({**row, "date": row["ts"].date()})
    files = []
    for day, of_day in sorted(by_day.items()):
        path = folder / f"date={day}" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(of_day, HITS).sort_by([(column, "ascending") for column in HITS_ORDER])
        pq.write_table(table.drop_columns("date"), path)
        files.append(File(str(path), day, path.stat().st_size, len(of_day)))
    return files
