"""Model of the reports: counts of a list of rows in plain Python, by loops and dictionaries.

The time buckets are found by local time and by steps of minutes, and not by the transitions of a zone.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import chain, zip_longest
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from tests.warehouse.site import Row, column
from warehouse.columns.filters import Filters
from warehouse.control.policy import Periods
from warehouse.query.time_range import FIRST, LAST
from warehouse.report.results import Query

Views = tuple[int, int, int]
"""Views of people, AI agents and other bots."""
Counted = list[tuple[str | None, Views]]
"""Values, or paths, or starts of buckets, each with its views, in the order of the report."""

ZERO: Views = (0, 0, 0)
BUCKETS_MAX = 10_000
"""Maximum number of buckets in a series."""
TRAFFIC = ("human", "ai", "bot")
OF_VISITS = {"entryPage", "exitPage"}
PAGES = {"path", *OF_VISITS}
MICROSECOND = timedelta(microseconds=1)
TIMEOUT = timedelta(minutes=30)
STEP = timedelta(minutes=15)
"""Step of the search for the hours of a range. Each offset from UTC is a multiple of it since 1972."""


def matching(rows: Iterable[Row], query: Query) -> list[Row]:
    """Return the rows that a report counts."""
    end = query.end or query.now
    within = [row for row in rows if row["project_id"] == query.project and query.start <= row["ts"] < end]
    if OF_VISITS & query.filters.fields.keys():
        within = with_pages(within)
    return [row for row in within if matches(row, query.filters)]


def with_pages(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with the entry and exit pages of their visits.

    The first row also has the views, the last time, and the time of the next visit.
    """
    result = list[Row]()

    def key(row: Row) -> tuple[Any, ...]:
        return (*of_visitor(row), row["source"])

    in_order = sorted(rows, key=lambda row: (row["ts"], row["path"].encode()))
    visits = defaultdict[Any, list[list[Row]]](list)
    for row in in_order:
        if row["traffic"] != "human" or row["visitor"] is None:
            result.append({**row, **dict.fromkeys(OF_VISITS)})
        elif (of_reader := visits[key(row)]) and row["ts"] - of_reader[-1][-1]["ts"] <= TIMEOUT:
            of_reader[-1].append(row)
        else:
            of_reader.append([row])
    for visit, following in chain(*(zip_longest(each, each[1:]) for each in visits.values())):
        pages = {"entryPage": visit[0]["path"], "exitPage": visit[-1]["path"]}
        times = {"ended": visit[-1]["ts"], "next": following and following[0]["ts"]}
        result.append({**visit[0], **pages, **times, "views": len(visit)})
        result += [{**row, **pages} for row in visit[1:]]
    return result


def of_visitor(row: Row) -> tuple[Any, ...]:
    return row["project_id"], row["ts"].date(), row["visitor"]


def matches(row: Row, filters: Filters) -> bool:
    for name, wanted in filters.fields.items():
        value = value_of(row, name)
        if name in PAGES and value is not None and "*" in {wanted[0], wanted[-1]}:
            part = wanted.removeprefix("*").removesuffix("*")
            if not (part in value if wanted[0] == "*" else value.startswith(wanted[:-1])):
                return False
        elif value != wanted:
            return False
    return counts_under(row, filters.policy)


def counts_under(row: Row, periods: Periods) -> bool:
    """Return whether a row counts under the policy of its day."""
    policy, is_beacon = "all", row["source"] == "beacon"
    for period in periods:
        if row["ts"].date() >= period.from_date:
            policy = period.policy
    match policy:
        case "beacon_only":
            return is_beacon
        case "log_only":
            return not is_beacon
        case "beacon_people_log_machines":
            is_person = row["traffic"] == "human" and row["format"] not in {"text/markdown", "markdown", "md"}
            return is_beacon == is_person
        case "confirmed_people":
            return value_of(row, "evidence") != "none"
    return True


def with_evidence(rows: Sequence[Row], loads: Iterable[Row]) -> list[Row]:
    """Return the rows of a lake with the evidence of their visitors. `loads` are rows of `asset_loads`."""

    def day(row: Row) -> tuple[str, date]:
        return row["project_id"], row["ts"].date()

    of_assets, of_visitors = Counter[tuple[str, date]](), defaultdict[Any, list[Row]](list)
    loaded = {(load["project_id"], load["date"], load["visitor"]) for load in loads}
    for load in loads:
        of_assets[load["project_id"], load["date"]] += load["loads"]
    views = Counter(day(row) for row in rows if row["source"] == "log")
    for row in rows:
        if row["traffic"] == "human" and row["visitor"] is not None:
            of_visitors[*day(row), row["visitor"]].append(row)

    def evidence(row: Row) -> str | None:
        seen = of_visitors[*day(row), row["visitor"]]
        if row["traffic"] != "human" or not seen:
            return None if row["traffic"] != "human" else "not_measured"
        is_measured = 99 * of_assets[day(row)] >= max(views[day(row)], 1)
        if any(each["source"] == "beacon" for each in seen):
            return "script"
        if is_measured and (*day(row), row["visitor"]) in loaded:
            return "assets"
        if any(_linked(each) == page["path"] and page["ts"] < each["ts"] for each in seen for page in seen):
            return "navigation"
        return "none" if is_measured else "not_measured"

    return [{**row, "evidence": evidence(row)} for row in rows]


def _linked(row: Row) -> str | None:
    """Return the page of the same site that links to a view."""
    if row["channel"] is not None or row["referrer_host"] is None:
        return None
    path = urlsplit(row["referrer"] or "").path.rstrip("/")
    return path.removesuffix("/index.html") or "/"


def value_of(row: Row, by: str) -> str | None:
    """Return the value of a row in a breakdown."""
    if by == "verification":
        return row["verification"] or (None if row["traffic"] == "human" else "not_checked")
    if by == "evidence":
        assert row["visitor"] is None or "evidence" in row, "the evidence of a visitor depends on other rows"
        return row.get("evidence", "not_measured") if row["traffic"] == "human" else None
    value = row[by if by in OF_VISITS else column(by)]
    return None if value is None else str(value)


def totals(rows: Iterable[Row]) -> Views:
    """Return the views of all rows."""
    counted = dict(_count(rows, lambda row: None))
    return counted.get(None, ZERO)


def views(rows: Iterable[Row]) -> Counted:
    """Return the views of each path that has a human or AI view."""
    return [(path, counts) for path, counts in breakdown(rows, "path") if counts[0] + counts[1]]


def breakdown(rows: Iterable[Row], by: str) -> Counted:
    """Return the views of each value: most human and AI views first, then in byte order, null last."""

    def rank(item: tuple[str | None, Views]) -> tuple[int, bool, bytes]:
        value, (human, ai, _) = item
        return -human - ai, value is None, (value or "").encode()

    return sorted(_count(rows, lambda row: value_of(row, by)), key=rank)


def series(rows: Sequence[Row], query: Query, interval: str, zone: ZoneInfo) -> Counted | None:
    """Return the views of each bucket, in order; None if there are more than BUCKETS_MAX.

    `rows` are all rows of the lake: a range without a start begins with the first hit of the project. A range without
    an end has the bucket of `now`.
    """
    of_project = [row["ts"] for row in rows if row["project_id"] == query.project]
    start = query.start if query.start != FIRST else min(of_project, default=LAST)
    end = query.end or query.now + MICROSECOND
    if start >= end:
        return []
    label = LABELS[interval]
    labels = _labels(start, end, interval, zone)
    if labels is None:  # such a range may have hits of the year 1, whose local hour cannot be computed
        return None
    counted = dict(_count(matching(rows, query), lambda row: label(row["ts"], zone)))
    return [(each, counted.get(each, ZERO)) for each in labels]


def missing_days(rows: Sequence[Row]) -> list[date]:
    """Return the days without a hit between the first and the last hit, in order."""
    days = {row["ts"].date().toordinal() for row in rows}
    return [date.fromordinal(day) for day in range(min(days), max(days)) if day not in days]


def _labels(start: datetime, end: datetime, interval: str, zone: ZoneInfo) -> list[str] | None:
    """Return the labels of all buckets that contain an instant of the range; None if there are too many."""
    if (end - start) / LENGTHS[interval] > BUCKETS_MAX + 1:
        return None
    labels = dict.fromkeys(LABELS[interval](instant, zone) for instant in _instants(start, end, interval))
    return None if len(labels) > BUCKETS_MAX else list(labels)


def _instants(start: datetime, end: datetime, interval: str) -> Iterator[datetime]:
    """Yield instants of a range, in order, among them one of each bucket that contains an instant of the range."""
    step = STEP if interval == "hour" else 24 * STEP
    yield start
    instant = (start if interval != "hour" else start.replace(minute=0, second=0, microsecond=0)) + step
    while instant < end:
        if instant > start:
            yield instant
        instant += step
    yield end - MICROSECOND


def _local(instant: datetime, zone: ZoneInfo) -> datetime:
    try:
        return instant.astimezone(zone)
    except OverflowError:  # before the year 1 in the zone
        return datetime.min.replace(tzinfo=zone)


def _hour(instant: datetime, zone: ZoneInfo) -> str:
    """Return the start of an hour: the last full hour, or change of the clock, up to the instant."""
    local = _local(instant, zone)
    begin = local.replace(second=0, microsecond=0).astimezone(UTC)
    full_hour = begin - timedelta(minutes=local.minute)
    if full_hour.astimezone(zone).utcoffset() == local.utcoffset():
        return full_hour.astimezone(zone).isoformat()
    while (begin - timedelta(minutes=1)).astimezone(zone).utcoffset() == local.utcoffset():
        begin -= timedelta(minutes=1)
    return begin.astimezone(zone).isoformat()


def _day(instant: datetime, zone: ZoneInfo) -> str:
    return _local(instant, zone).date().isoformat()


def _week(instant: datetime, zone: ZoneInfo) -> str:
    day = _local(instant, zone).date()
    return date.fromordinal(day.toordinal() - day.weekday()).isoformat()


def _month(instant: datetime, zone: ZoneInfo) -> str:
    return _local(instant, zone).date().replace(day=1).isoformat()


LABELS: dict[str, Callable[[datetime, ZoneInfo], str]] = {"hour": _hour, "day": _day, "week": _week, "month": _month}
"""Function that returns the label of the bucket of an instant, by interval."""
LENGTHS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=30.436875),
}
"""Length of a bucket, for months the mean, by interval."""


def _count(rows: Iterable[Row], key: Callable[[Row], str | None]) -> list[tuple[str | None, Views]]:
    counted: dict[str | None, list[int]] = {}
    for row in rows:
        counted.setdefault(key(row), [0, 0, 0])[TRAFFIC.index(row["traffic"])] += 1
    return [(value, (human, ai, bot)) for value, (human, ai, bot) in counted.items()]
