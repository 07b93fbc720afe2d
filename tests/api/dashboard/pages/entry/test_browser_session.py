"""The address to which a sign-in returns."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import urljoin, urlsplit

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


def test_only_a_path_of_this_service_is_accepted() -> None:
    own = {
        "/projects/site": "/projects/site",
        "/projects/site?period=7d&path=/a%26b": "/projects/site?period=7d&path=%2Fa%26b",
        "/projects/site/ai/Mistral AI": "/projects/site/ai/Mistral%20AI",
        "///evil.example": "/evil.example",
        "/\\evil.example": "/%5Cevil.example",
    }
    assert {text: own_href(visit(), text) for text in own} == own
    for other in (
        None, "", "//evil.example", "////evil.example", "//evil.example/account", "\\\\evil.example",
        "/\t/evil.example", "https://evil.example/account", "https:/account", "javascript:alert(1)", "evil.example",
        "//[evil", "/a?" + "&".join(f"p{number}=1" for number in range(101)),
    ):  # fmt: skip
        assert own_href(visit(), other) == "/projects", other


def test_address_has_the_prefix_of_the_proxy() -> None:
    assert own_href(visit("https://example.com/stats"), "/projects/site?period=7d") == "/stats/projects/site?period=7d"


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=5).map("".join))
def test_no_text_leads_to_another_host(text: str) -> None:
    target = urlsplit(urljoin(PAGE, own_href(visit(), text)))
    assert (target.scheme, target.netloc) == ("https", "stats.example")
