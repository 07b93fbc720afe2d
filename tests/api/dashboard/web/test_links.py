"""Addresses of pages and cookies, behind a proxy and without one."""

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


def test_path_is_decoded_for_people() -> None:
    for path, text in {
        "/blog/caf%C3%A9-albums": "/blog/café-albums",
        "/%E5%86%99%E7%9C%9F": "/写真",
        "/%D0%B1%D0%BB%D0%BE%D0%B3-2": "/блог-2",
        "/%E0%A4%B9%E0%A4%BF%E0%A4%A8%E0%A5%8D%E0%A4%A6%E0%A5%80": "/हिन्दी",
        "/%F0%9F%8E%89": "/🎉",
        "/a/%D7%90%D7%91/%D7%92": "/a/<bdi>אב</bdi>/<bdi>ג</bdi>",
        "/%22%3E<script>": "/%22%3E&lt;script&gt;",
    }.items():
        assert _without_breaks(path) == text


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/tags/raw%2Fdng", id="slash"),
        pytest.param("/100%25", id="percent"),
        pytest.param("/a%20b%0A%7F", id="space and control characters"),
        pytest.param("/%E2%80%AEfdp.exe", id="override of the direction"),
        pytest.param("/%E2%80%8Ba", id="space of no width"),
        pytest.param("/a%C2%A0b", id="space that does not break"),
        pytest.param("/%C3", id="incomplete UTF-8"),
        pytest.param("/%c3%a9", id="other spelling of an escape"),
        pytest.param("/%EF%BC%8Fdocs", id="wide slash"),
        pytest.param("/cafe%CC%81", id="mark of its own"),
        pytest.param("/%D0%B0%D1%80%D0%B5", id="word that looks like ape"),
        pytest.param("/word%D1%80ress", id="Cyrillic letter in an ASCII word"),
        pytest.param("/%C9%A1", id="phonetic letter that looks like g"),
        pytest.param("/%EF%B8%8F", id="variation selector"),
        pytest.param("/%E1%85%9F", id="letter that is not visible"),
        pytest.param("/%F3%A0%81%81", id="tag character"),
    ],
)
def test_path_that_could_look_like_another_one_stays_encoded(path: str) -> None:
    assert _without_breaks(path) == path


def test_line_of_a_long_path_ends_after_a_slash_or_a_hyphen() -> None:
    assert links.readable("/docs/a-path") == "/<wbr>docs/<wbr>a-<wbr>path"
    assert links.readable("/%D7%90-&") == "/<wbr><bdi>א-<wbr>&amp;</bdi>"


def _without_breaks(path: str) -> str:
    return links.readable(path).replace("<wbr>", "")


@given(st.text(max_size=8), st.text(max_size=8))
def test_two_paths_never_have_one_text(one: str, other: str) -> None:
    first, second = (quote(f"/{text}") for text in (one, other))
    assert (links.readable(first) == links.readable(second)) == (first == second)
    assert quote(re.sub("</?bdi>|<wbr>", "", links.readable(first)), safe="/%") == first


def test_public_address() -> None:
    for base_url, scheme, expected, is_https in (
        ("", "http", "http://127.0.0.1:8000", False),
        ("", "https", "https://127.0.0.1:8000", True),
        ("https://example.com/stats/", "http", "https://example.com/stats", True),
    ):
        assert links.public_url(request(scheme), base_url) == expected
        assert links.is_https(request(scheme), base_url) == is_https


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
