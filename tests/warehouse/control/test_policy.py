"""A policy counts the hits of its definition, from its day on."""

from datetime import UTC, date, datetime
from itertools import product

import duckdb
import pyarrow as pa
import pytest

from warehouse.control.policy import (
    BY_FORMAT,
    MARKDOWN,
    POLICIES,
    Period,
    Policy,
    Span,
    changed,
    condition,
    counts,
    first_day,
    on,
    spans,
)

BEFORE, SINCE = datetime(2026, 9, 9, 23, 59, 59, 999_999, tzinfo=UTC), datetime(2026, 9, 10, tzinfo=UTC)
ROWS = [
    {"ts": ts, "source": source, "traffic": traffic, "format": format}
    for ts, source, traffic, format in product(
        (BEFORE, SINCE), ("beacon", "server", "log"), ("human", "ai", "bot"), (None, "text/html", *MARKDOWN)
    )
]


def is_counted(row: dict[str, object], policy: str) -> bool:
    if policy == "beacon_only":
        return row["source"] == "beacon"
    if policy == "log_only":
        return row["source"] in {"log", "server"}
    if policy == "beacon_people_log_machines":
        is_person = row["traffic"] == "human" and row["format"] not in MARKDOWN
        return row["source"] == "beacon" if is_person else row["source"] != "beacon"
    return True


def test_each_policy_counts_from_its_day_on_and_the_default_before() -> None:
    for first, second in product(POLICIES, POLICIES):
        periods = (Period(date.min, first), Period(date(2026, 9, 10), second))
        sql, values = condition(periods)
        rows = pa.Table.from_pylist(ROWS)
        read = duckdb.connect().sql(f"SELECT *, {sql} AS counts FROM rows", params=values).to_arrow_table()
        assert rows.num_rows == 90
        expected = [is_counted(row, first if row["ts"] == BEFORE else second) for row in ROWS]
        assert read["counts"].to_pylist() == expected


def test_policy_of_a_day_is_the_last_one_that_began() -> None:
    periods = (Period(date(2026, 9, 10), "beacon_only"), Period(date(2026, 9, 20), "log_only"))
    days = {date(2026, 9, 9): "all", date(2026, 9, 10): "beacon_only", date(2026, 9, 20): "log_only"}
    assert {day: on(periods, day) for day in days} == days
    assert on((), date(2026, 9, 9)) == "all"


def test_spans_divide_the_days_where_a_policy_begins() -> None:
    periods = (Period(date(2026, 9, 10), "beacon_only"), Period(date(2026, 9, 20), "log_only"))
    first = Span(date(2026, 9, 1), date(2026, 9, 10), "all")
    second = Span(date(2026, 9, 10), date(2026, 9, 20), "beacon_only")
    assert spans(periods, date(2026, 9, 1), date(2026, 9, 21)) == [
        first,
        second,
        Span(date(2026, 9, 20), date(2026, 9, 21), "log_only"),
    ]
    assert spans(periods, date(2026, 9, 1), date(2026, 9, 10)) == [first]
    assert spans(periods, date(2026, 9, 10), date(2026, 9, 20)) == [second]
    assert spans((), date(2026, 9, 1), date(2026, 9, 1)) == []


def test_policy_counts_a_source_and_kind_of_traffic_as_it_counts_a_hit_without_markdown() -> None:
    for policy, row in product(POLICIES, ROWS):
        is_reversed = policy == BY_FORMAT and row["traffic"] == "human" and row["format"] in MARKDOWN
        counted = counts(policy, str(row["source"]), str(row["traffic"]))
        assert counted == (is_counted(row, policy) != is_reversed)


@pytest.mark.parametrize(
    ("chosen", "first"),
    [
        ("all", date.min),
        ("beacon_only", date(2026, 9, 12)),
        ("beacon_people_log_machines", date(2026, 9, 12)),
        ("log_only", date(2026, 9, 3)),
    ],
)
def test_policy_begins_with_the_source_that_it_prefers(chosen: Policy, first: date) -> None:
    hits = {name: datetime(2026, 9, day, 23, tzinfo=UTC) for name, day in (("beacon", 12), ("server", 3), ("log", 5))}
    today = date(2026, 9, 28)
    assert first_day(chosen, hits, today) == first
    assert first_day(chosen, {}, today) == (date.min if chosen == "all" else today)


def test_new_policy_replaces_those_of_later_days() -> None:
    one, two = Period(date(2026, 9, 1), "log_only"), Period(date(2026, 9, 9), "beacon_only")
    periods = changed((one, two), "all", date(2026, 9, 5))
    assert periods == (one, Period(date(2026, 9, 5), "all"))
