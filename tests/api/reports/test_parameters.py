"""Query parameters of the reports: each value is parsed exactly, or named with its limit or its allowed values."""

from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from api.http.operation import LIMIT_DEFAULT
from api.http.problems import Problem
from api.reports.parameters import TEXT_CHARACTERS_MAX, Selection, select
from api.reports.records import REPORTS
from warehouse.columns.dimensions import BREAKDOWNS, FILTERS
from warehouse.columns.filters import Filters
from warehouse.columns.visits import OF_VISITS
from warehouse.query.moment import Moment
from warehouse.query.time_range import FIRST

MOMENT = "2026-09-01T12:00:00.123456Z_41_1077"
PARAMETERS = {each.name: each.parameters for each in REPORTS if each.name != "errors"}


def request(query: str) -> Request:
    return Request({"type": "http", "query_string": query.encode("latin-1"), "headers": []})


def selected(operation: str, query: str) -> Selection:
    return select(request(query), "demo", PARAMETERS[operation])


def faults(operation: str, **parameters: Any) -> dict[str | None, str]:
    """Return the details of the faults by parameter; `by` is there if the operation is a breakdown."""
    by = {"by": "agent"} if operation == "breakdown" else {}
    with pytest.raises(Problem) as raised:
        selected(operation, urlencode({**by, **parameters}))
    assert raised.value.kind == "invalid-parameter"
    return {fault.parameter: fault.detail for fault in raised.value.faults}


def filters(**parameters: str) -> Filters:
    return selected("views", urlencode(parameters)).filters


def test_query_without_parameters_has_no_filter_and_the_newest_moment() -> None:
    for operation in ("views", "series", "coverage"):
        assert selected(operation, "") == Selection(
            "demo", FIRST, None, Filters(), None, LIMIT_DEFAULT, 0, interval="day", zone=ZoneInfo("UTC")
        )


def test_every_filter_is_parsed() -> None:
    sent = {
        "path": "/docs/*", "entryPage": "/docs/*", "exitPage": "*install*", "traffic": "ai", "agent": "GPTBot",
        "operator": "OpenAI", "purpose": "training", "verification": "not_checked", "source": "log",
        "evidence": "assets", "channel": "Search", "referrerHost": "example.com", "utmSource": "mail",
        "utmMedium": "email", "utmCampaign": "spring", "utmTerm": "a", "utmContent": "b", "click": "gclid",
        "country": "DE", "language": "pt-BR", "browser": "Firefox", "os": "Linux", "device": "phone",
        "format": "html", "status": "200", "rule": "ai:GPTBot",
    }  # fmt: skip
    assert {*sent} == {*FILTERS}
    assert filters(**sent).fields == sent
    assert selected("series", urlencode(sent)).filters.fields == sent
    assert selected("breakdown", urlencode({"by": "os"} | sent)).filters.fields == sent


def test_path_is_normalised_like_the_path_of_a_hit() -> None:
    stored = {
        "/docs": "/docs", "docs/": "/docs", "/docs/index.html?a=b": "/docs", "/caf\u00e9": "/caf%C3%A9",
        "/docs/*": "/docs/*", "docs*": "/docs*", "/caf\u00e9/*": "/caf%C3%A9/*", "*": "/*",
        "*install*": "*install*", "*.md*": "*.md*", "/a**": "/a**",
    }  # fmt: skip
    assert {sent: filters(path=sent).path for sent in stored} == stored


def test_invalid_path_is_named_with_its_limit() -> None:
    absolute = ("https://example.com/docs", "https://example.com/*")
    for path in ("", "*install", *absolute, "/a?b*", "/a\n", "/" + 2_048 * "a"):
        assert "2048 characters" in faults("views", path=path)["path"]


def test_value_outside_a_closed_set_is_named_with_the_allowed_values() -> None:
    for name, values in {
        "traffic": "human, ai, bot",
        "purpose": "training, search, assistant, agent, data",
        "verification": "verified, signed_known_key, spoofed, invalid_signature, claimed, not_checked",
        "source": "beacon, server, log",
    }.items():
        for operation in ("views", "series", "breakdown"):
            assert faults(operation, **{name: "Other"}) == {name: f"must be one of {values}, not 'Other'"}
            assert faults(operation, **{name: ""}) == {name: f"must be one of {values}, not ''"}


def test_interval_and_dimension_are_closed_sets() -> None:
    assert faults("series", interval="year") == {"interval": "must be one of hour, day, week, month, not 'year'"}
    detail = faults("breakdown", by="planet")["by"]
    assert detail == f"must be one of {', '.join((*BREAKDOWNS, *OF_VISITS))}, not 'planet'"


def test_breakdown_requires_its_dimension() -> None:
    with pytest.raises(Problem) as raised:
        selected("breakdown", "")
    assert [(fault.parameter, fault.detail) for fault in raised.value.faults] == [
        ("by", f"is required: one of {', '.join((*BREAKDOWNS, *OF_VISITS))}")
    ]
    query = selected("breakdown", "by=referrerHost&offset=7")
    assert (query.by, query.limit, query.offset) == ("referrerHost", LIMIT_DEFAULT, 7)


def test_text_that_no_hit_has_is_rejected_with_the_limit() -> None:
    for name in ("agent", "operator", "referrerHost", "status"):
        for value in ("", "a" * (TEXT_CHARACTERS_MAX + 1), "GPT\nBot", "\x00"):
            assert "1 to 256 characters" in faults("views", **{name: value})[name]
    assert filters(agent="a" * TEXT_CHARACTERS_MAX)["agent"] == "a" * TEXT_CHARACTERS_MAX, "an unknown one"


def test_time_zone_is_an_iana_name() -> None:
    for name in ("Europe/Berlin", "America/Argentina/Buenos_Aires", "Asia/Kathmandu", "UTC", "Etc/GMT+5"):
        assert selected("series", urlencode({"timezone": name})).zone == ZoneInfo(name)
    others = "utc+1 Europe europe/berlin ../etc/passwd /etc/localtime localtime".split()
    for name in (*others, "", "\x00", 5_000 * "x"):
        assert "IANA time zone (Europe/Berlin)" in faults("series", timezone=name)["timezone"]


def test_moment_is_that_of_an_earlier_response() -> None:
    for operation in PARAMETERS:
        query = f"by=agent&asOf={MOMENT}" if operation == "breakdown" else f"asOf={MOMENT}"
        assert selected(operation, query).as_of == Moment.parse(MOMENT)
        for text in ("", "now", "2026-09-01", MOMENT + "x"):
            assert "X-As-Of of an earlier response" in faults(operation, asOf=text)["asOf"]


def test_parameters_of_other_operations_are_unknown() -> None:
    assert set(faults("series", limit=1, offset=0, by="agent")) == {"limit", "offset", "by"}
    assert set(faults("coverage", dateFrom="2026-09-01", path="/a")) == {"dateFrom", "path"}
    assert set(faults("views", interval="day", timezone="UTC")) == {"interval", "timezone"}


def test_error_has_every_fault() -> None:
    invalid = dict.fromkeys(("path", "traffic", "agent", "operator", "purpose", "verification", "source", "asOf"), "")
    others: dict[str, Any] = {"by": "", "limit": 0, "offset": -1, "dateFrom": "x", "dateTo": "y"}
    assert set(faults("breakdown", **others, **invalid)) == {*others, *invalid}


@settings(max_examples=100)
@given(
    st.sampled_from(list(PARAMETERS)),
    st.dictionaries(st.sampled_from(["path", "agent", "timezone", "asOf", "by"]), st.text(max_size=20), max_size=4),
)
@example("views", {"path": "/%*"})
def test_any_text_is_parsed_or_rejected_with_its_faults(operation: str, parameters: dict[str, str]) -> None:
    query = "&".join(f"{name}={quote(value, errors='replace')}" for name, value in parameters.items())
    try:
        selected(operation, query)
    except Problem as problem:
        error = problem
    else:
        return
    assert error.kind == "invalid-parameter"
    assert {fault.parameter for fault in error.faults} <= {*parameters, "by"}
