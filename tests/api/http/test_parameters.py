"""Query parameters: parsed exactly, or an error with every fault."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from api.http.operation import LIMIT_MAX
from api.http.parameters import single
from api.http.problems import Problem
from api.reports.parameters import FILTERS as PARAMETERS
from api.reports.parameters import Selection, select
from api.reports.records import VIEWS
from warehouse.columns.dimensions import FILTERS, PAGES
from warehouse.query.time_range import FIRST, LAST

NAMES = ("dateFrom", "dateTo", "limit", "offset")
NOON = datetime(2026, 9, 15, 12, tzinfo=UTC)


def request(query: str) -> Request:
    return Request({"type": "http", "query_string": query.encode("latin-1"), "headers": []})


def selected(query: str) -> Selection:
    return select(request(query), "demo", VIEWS.parameters)


def parsed(**parameters: Any) -> Selection:
    return selected(urlencode(parameters))


def faults(query: str) -> list[str | None]:
    """Return the names of the invalid parameters."""
    with pytest.raises(Problem) as raised:
        selected(query)
    assert raised.value.kind == "invalid-parameter"
    assert all(fault.detail for fault in raised.value.faults)
    return [fault.parameter for fault in raised.value.faults]


def test_all_filters_fit_into_one_query_with_a_range_a_page_and_a_moment() -> None:
    sent = dict.fromkeys(FILTERS, "x") | dict.fromkeys(PAGES, "/" + "a" * 300)
    sent |= {name: values[0] for name, each in PARAMETERS.items() if (values := each.schema.get("enum"))}
    others = {"dateFrom": "2026-09-01", "dateTo": "2026-09-02", "asOf": "2026-09-01T12:00:00.123456Z_41_1077"}
    assert parsed(limit=9, offset=1, **others, **sent).filters.fields == sent


def test_date_is_midnight_and_a_time_is_exact() -> None:
    at_noon = (
        "2026-09-15T12:00:00Z", "2026-09-15T12:00:00", "2026-09-15 12:00:00Z", "2026-09-15T12:00Z",
        "2026-09-15t12:00:00z", "2026-09-15 12:00:00", "20260915T120000Z", "20260915T12", "2026W382T12",
        "2026-09-15T14:00:00+0200", "2026-09-15T14:00:00+02:00", "2026-09-15T02:30:00-09:30",
    )  # fmt: skip
    instants = dict.fromkeys(at_noon, NOON)
    instants |= dict.fromkeys(("2026-09-15", "20260915", "2026-W38-2"), datetime(2026, 9, 15, tzinfo=UTC))
    instants |= {
        "2026-09-15T12:00:00,5": NOON + timedelta(milliseconds=500),
        "2026-09-15T12:00:00.000001999Z": NOON + timedelta(microseconds=1),
        "2026-09-15T12:00:00.000001Z": NOON + timedelta(microseconds=1),
        "0001-01-01": FIRST,
        "9999-12-31": LAST,
        "9999-12-31T23:59:59.999999Z": LAST,
    }
    for text, instant in instants.items():
        assert parsed(dateFrom=text).start == instant, text
        assert parsed(dateTo=text).end == instant, text


def test_invalid_date_is_a_fault() -> None:
    for text in (
        "", "yesterday", "2026-02-30", "2026-13-01", "2026-9-1", "0000-01-01", "10000-01-01", "15/09/2026",
        "2026-09-15T25:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "1789473600",
        "2026-09-15+02:00", "2026-09-15-02:00", "2026-09-15 02:00", "2026-09-15\xe912:00", "2026-09-15_12:00:00Z",
        "2026-09-15T12:00:00 Z", "2026-09-15T12:00:00+02:00:30", "2026-09-15T", "2026-09-15T1200",
        "20260915T12:00", "2026-09-15T12:00:00.", "2026-W38", "2026-258", "2026-09",
        "\uff12\uff10\uff12\uff16-09-15", "2026-09-15\n", "2026-09-15\x00",
    ):  # fmt: skip
        assert faults(urlencode({"dateFrom": text})) == ["dateFrom"], text
        assert faults(urlencode({"dateTo": text})) == ["dateTo"], text


def test_plus_of_a_zone_that_was_decoded_to_a_space_is_explained() -> None:
    for text in ("2026-09-15T14:00:00+02:00", "2026-09-15+02:00"):
        with pytest.raises(Problem, match="%2B"):
            selected(f"dateFrom={text}")


def test_limit_and_offset_are_parsed() -> None:
    for sent, expected in {
        "limit=1": (1, 0),
        f"limit={LIMIT_MAX}": (250, 0),
        "limit=007": (7, 0),
        "offset=0": (50, 0),
        "limit=10&offset=20": (10, 20),
        f"offset={10**17}": (50, 10**17),
    }.items():
        query = selected(sent)
        assert (query.limit, query.offset) == expected
    assert parsed(offset="9" * 5_000).offset >= 10**17


def test_invalid_limit_or_offset_is_a_fault() -> None:
    for text in ("", "0", "251", "-1", "+5", "1.0", "1e2", "0x10", "ten", "1_0", " 5", "\u0665", "9" * 5_000):
        assert faults(urlencode({"limit": text})) == ["limit"]
    for text in ("", "-1", "1.5", "x", "\u00b2"):
        assert faults(urlencode({"offset": text})) == ["offset"]


def test_range_may_be_empty_but_not_end_before_its_start() -> None:
    assert faults("dateFrom=2026-09-16&dateTo=2026-09-15") == ["dateFrom"]
    assert faults("dateFrom=2026-09-15T00:00:00.000001&dateTo=2026-09-15") == ["dateFrom"]
    empty = parsed(dateFrom="2026-09-15", dateTo="2026-09-15")
    assert empty.start == empty.end


def test_repeated_or_unknown_parameter_is_a_fault() -> None:
    for name in NAMES:
        value = "2026-09-15" if name.startswith("date") else "1"
        assert faults(f"{name}={value}&{name}={value}") == [name]
    for name in ("datefrom", "from", "LIMIT", "", "a" * 200):
        assert faults(urlencode({name: "1"})) == [name[:100]]


def test_single_rejects_unknown_and_repeated_parameters() -> None:
    assert single(request("a=1&b=%C3%A9+x"), ("a", "b", "c")) == {"a": "1", "b": "\xe9 x"}
    with pytest.raises(Problem) as raised:
        single(request("a=1&a=2&d=3"), ("a", "b", "c"))
    assert [fault.parameter for fault in raised.value.faults] == ["a", "d"]


offsets = st.timedeltas(timedelta(hours=-14), timedelta(hours=14)).map(
    lambda offset: timezone(timedelta(minutes=offset // timedelta(minutes=1)))
)
aware = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=offsets)  # noqa: DTZ001  # bounds are naive


@pytest.mark.long
@settings(max_examples=100)
@given(aware, aware)
def test_time_with_any_zone_is_exact_to_the_microsecond(one: datetime, other: datetime) -> None:
    start, end = sorted((one, other))
    query = parsed(dateFrom=start.isoformat(), dateTo=end.isoformat())
    assert (query.start, query.end) == (start, end)
    assert query.start.tzinfo is UTC


values = st.text(max_size=30) | st.sampled_from(
    ["2026-09-15", "2026-09-15T12:00:00Z", "9999-12-31T23:59:59-23:59", "1", "-0"]
)
queries = st.lists(st.tuples(st.sampled_from(NAMES) | st.text(max_size=5), values), max_size=6).map(
    lambda pairs: "&".join(f"{quote(name, errors='replace')}={quote(value, errors='replace')}" for name, value in pairs)
)


@pytest.mark.long
@settings(max_examples=500)
@given(queries | st.binary(max_size=60).map(lambda query: query.decode("latin-1")))
def test_any_query_is_parsed_or_rejected_with_its_faults(query: str) -> None:
    try:
        selection = selected(query)
    except Problem as problem:
        error = problem
    else:
        assert FIRST <= selection.start <= (selection.end or LAST) <= LAST
        assert 1 <= selection.limit <= LIMIT_MAX
        assert selection.offset >= 0
        return
    assert error.kind == "invalid-parameter"
    assert error.faults
