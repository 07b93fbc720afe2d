"""CORS headers for the origins of a project."""

import pytest
from starlette.requests import Request

from api.http import cors
from api.http.problems import Problem
from warehouse.control.projects import Project

SITE = Project("site", ("https://example.com", "http://localhost:3000"), 0)
ANY = Project("any", ("*",), 0)


def request(origin: str | None) -> Request:
    return Request({"type": "http", "headers": [] if origin is None else [(b"origin", origin.encode())]})


@pytest.mark.parametrize("origin", ["https://example.com", "http://localhost:3000"])
def test_page_of_an_allowed_origin_may_read_the_response(origin: str) -> None:
    expected = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    assert cors.allowed(request(origin), SITE) == expected
    assert cors.preflight(request(origin), SITE).items() > expected.items()


@pytest.mark.parametrize(
    "origin", ["http://example.com", "https://example.com:444", "https://www.example.com", "null", "*", ""]
)
def test_other_origin_is_rejected(origin: str) -> None:
    for headers in (cors.allowed, cors.preflight):
        with pytest.raises(Problem) as raised:
            headers(request(origin), SITE)
        assert raised.value.kind == "origin-not-allowed"


def test_project_may_allow_any_origin() -> None:
    assert cors.allowed(request("https://other.example"), ANY)["Access-Control-Allow-Origin"] == "https://other.example"


def test_request_without_an_origin_is_allowed_and_gets_no_headers() -> None:
    assert (
        cors.allowed(request(None), SITE) == cors.preflight(request(None), SITE) == cors.readable(request(None)) == {}
    )


def test_page_of_any_origin_may_read_an_error() -> None:
    assert cors.readable(request("https://other.example")) == {
        "Access-Control-Allow-Origin": "https://other.example",
        "Vary": "Origin",
    }
