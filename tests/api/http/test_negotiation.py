"""The media type of a response by its quality in the Accept header."""

import pytest
from starlette.requests import Request

from api.http.negotiation import accepted
from api.http.problems import Problem

JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"


def media_type(*accept: str) -> str:
    headers = [(b"accept", value.encode()) for value in accept]
    return accepted(Request({"type": "http", "headers": headers}), (JSON, CSV, PARQUET), "the report")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        ("*/*", JSON),
        (CSV, CSV),
        ("Text/CSV; charset=utf-8", CSV),
        ("text/*", CSV),
        (f"{JSON};q=0.5, {CSV}", CSV),
        (f"{JSON};q=0.5, {CSV};q=0.4", JSON),
        ("*/*, application/json;q=0", CSV),  # the exact range decides, not the highest quality
        ("application/*;q=0.1, */*;q=0.9", CSV),
        (f"application/*;q=0, {PARQUET}", PARQUET),
        ("text/html, application/xhtml+xml, */*;q=0.8", JSON),
        ("text/csv;q=x", CSV),
    ],
)
def test_media_type_has_the_highest_quality(accept: str, expected: str) -> None:
    assert media_type(accept) == expected


def test_accept_headers_are_joined_and_none_accepts_any_type() -> None:
    assert media_type("text/html", CSV) == CSV
    assert media_type() == JSON


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "*/*;q=0", "csv", "text/csvx"])
def test_unavailable_media_type_is_rejected_with_the_available_ones(accept: str) -> None:
    with pytest.raises(Problem) as raised:
        media_type(accept)
    assert raised.value.kind == "not-acceptable"
    assert raised.value.detail == f"the report is available as {JSON}, {CSV} or {PARQUET}"
