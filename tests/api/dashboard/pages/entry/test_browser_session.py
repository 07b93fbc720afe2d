"""The address to which a sign-in returns."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from api.dashboard.pages.entry.browser_session import own_href
from api.dashboard.web.visit import Visit

PIECES = ["/", "//", "\\", ":", "?", "#", "@", "..", "%2F", "\t", "\n", " ", "[", "https:", "evil.example"]
PAGE = "https://stats.example/sign-in"


def visit(base_url: str = "") -> Visit:
    request = Request({"type": "http", "method": "GET", "path": "/sign-in", "query_string": b"", "headers": []})
    state: Any = SimpleNamespace(settings=SimpleNamespace(base_url=base_url))
    return Visit(request, state, datetime(2026, 9, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (None, "/projects"),
        ("", "/projects"),
        ("/projects/site", "/projects/site"),
        ("/projects/site?period=7d&path=/a%26b", "/projects/site?period=7d&path=%2Fa%26b"),
        ("/projects/site/ai/Mistral AI", "/projects/site/ai/Mistral%20AI"),
        ("//evil.example", "/projects"),
        ("///evil.example", "/evil.example"),
        ("////evil.example", "/projects"),
        ("//evil.example/account", "/projects"),
        ("/\\evil.example", "/%5Cevil.example"),
        ("\\\\evil.example", "/projects"),
        ("/\t/evil.example", "/projects"),
        ("https://evil.example/account", "/projects"),
        ("https:/account", "/projects"),
        ("javascript:alert(1)", "/projects"),
        ("evil.example", "/projects"),
        ("//[evil", "/projects"),
        ("/a?" + "&".join(f"p{number}=1" for number in range(101)), "/projects"),
    ],
)
def test_only_a_path_of_this_service_is_accepted(text: str | None, address: str) -> None:
    assert own_href(visit(), text) == address


def test_address_has_the_prefix_of_the_proxy() -> None:
    assert own_href(visit("https://example.com/stats"), "/projects/site?period=7d") == "/stats/projects/site?period=7d"


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=5).map("".join))
def test_no_text_leads_to_another_host(text: str) -> None:
    target = urlsplit(urljoin(PAGE, own_href(visit(), text)))
    assert (target.scheme, target.netloc) == ("https", "stats.example")
