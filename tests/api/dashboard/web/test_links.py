"""Addresses of pages and cookies, behind a proxy and without one."""

import pytest
from starlette.requests import Request
from starlette.responses import Response

from api.dashboard.web import cookies, links


def request(scheme: str = "http", cookie: str = "") -> Request:
    headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", cookie.encode())]
    scope = {"type": "http", "scheme": scheme, "path": "/", "headers": headers, "server": ("127.0.0.1", 8000)}
    return Request(scope)


def test_paths_and_parameters_are_encoded() -> None:
    address = links.href("", "/projects/a/ai/agents/A & B?", {"path": "/x?y=1&z", "none": None})
    assert address == "/projects/a/ai/agents/A%20&%20B%3F?path=%2Fx%3Fy%3D1%26z"


def test_links_have_the_prefix_of_the_proxy() -> None:
    assert links.href("https://example.com/stats/", "/projects", {}) == "/stats/projects"


@pytest.mark.parametrize(
    ("base_url", "scheme", "expected", "https"),
    [
        ("", "http", "http://127.0.0.1:8000", False),
        ("", "https", "https://127.0.0.1:8000", True),
        ("https://example.com/stats/", "http", "https://example.com/stats", True),
    ],
)
def test_public_address(base_url: str, scheme: str, expected: str, https: bool) -> None:
    assert links.public_url(request(scheme), base_url) == expected
    assert links.is_https(request(scheme), base_url) == https


def test_session_cookie_is_closed_to_scripts_and_to_forms_of_other_sites() -> None:
    response = Response()
    cookies.set_session(request(), response, "token", "")
    parts = response.headers["set-cookie"].split("; ")
    assert parts[0] == "readership_session=token"
    assert {"HttpOnly", "SameSite=lax", "Path=/", "Max-Age=34560000"} <= set(parts)
    assert "Secure" not in parts


def test_session_cookie_on_https_is_bound_to_the_host() -> None:
    response = Response()
    cookies.set_session(request("https"), response, "token", "")
    parts = response.headers["set-cookie"].split("; ")
    assert parts[0] == "__Host-readership_session=token"
    assert {"HttpOnly", "Secure", "Path=/"} <= set(parts)
    assert not [part for part in parts if part.startswith("Domain")]


def test_cookie_without_the_prefix_is_not_a_session_on_https() -> None:
    sent = request("https", "readership_session=planted")
    assert cookies.session_token(sent, "") is None
    assert cookies.session_token(request("http", "readership_session=token"), "") == "token"
