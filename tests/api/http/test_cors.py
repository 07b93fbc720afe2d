"""CORS headers for the origins of a project."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.requests import Request

from api.http import cors
from api.http.cors import OriginRefused, RefusedOrigin, RefusedOrigins
from api.http.problems import Problem
from warehouse.control.projects import Project

SITE = Project("site", ("https://example.com", "http://localhost:3000"), 0)
ANY = Project("any", ("*",), 0)


def request(origin: str | None, **others: str | None) -> Request:
    sent = {name.replace("_", "-").encode(): text for name, text in {"origin": origin, **others}.items()}
    headers = [(name, text.encode()) for name, text in sent.items() if text is not None]
    return Request({"type": "http", "headers": headers})


def test_other_origin_is_rejected() -> None:
    for origin in ("http://example.com", "https://example.com:444", "https://www.example.com", "null", "*", ""):
        for headers in (cors.allowed, cors.preflight):
            with pytest.raises(Problem) as raised:
                headers(request(origin), SITE)
            assert raised.value.kind == "origin-not-allowed"


def test_image_on_a_page_of_the_project_is_accepted() -> None:
    for referer, fetch_site in (
        ("https://example.com/page?q=1", "cross-site"),
        ("http://localhost:3000", "same-origin"),
        (None, "same-site"),
        (None, "same-origin"),
        (None, "none"),  # the user has opened the image
        (None, None),  # a program, or a browser of before 2023 that withholds the Referer
    ):
        cors.require_own_page(request(None, referer=referer, sec_fetch_site=fetch_site), SITE)


def test_image_on_a_page_of_another_site_is_refused() -> None:
    for referer, fetch_site, sender in (
        ("https://evil.example/", "cross-site", "the origin 'https://evil.example'"),
        ("https://evil.example/https://example.com", None, "the origin 'https://evil.example'"),
        ("https://example.com@evil.example/", None, "the origin 'https://example.com@evil.example/'"),
        ("https://www.example.com/", "same-site", "the origin 'https://www.example.com'"),
        ("a" * 1_000, None, f"the origin 'https://{'a' * 292}'"),
        ("", None, "the origin ''"),
        (None, "cross-site", "a page of another site that withholds its address (Referer)"),
    ):
        sent = request(None, referer=referer, sec_fetch_site=fetch_site)
        with pytest.raises(OriginRefused) as raised:
            cors.require_own_page(sent, SITE)
        assert raised.value.kind == "origin-not-allowed"
        detail = f"project 'site' does not accept beacons from {sender}; to accept them, "
        assert raised.value.detail.startswith(detail)
        assert raised.value.detail.endswith(": readership project origins site ORIGIN...")
        assert "localhost" not in raised.value.detail  # another origin of the project
        cors.require_own_page(sent, ANY)
        cors.require_own_page(sent, Project("new", (), 0))


def test_url_of_another_host_is_refused() -> None:
    for url in ("https://evil.example/https://example.com/", "https://www.example.com/", "https://a"):
        with pytest.raises(Problem, match="does not accept beacons"):
            cors.require_own_url(SITE, url)
        cors.require_own_url(ANY, url)
        cors.require_own_url(Project("new", (), 0), url)


@pytest.fixture
def refused(tmp_path: Path) -> Iterator[RefusedOrigins]:
    origins = RefusedOrigins(tmp_path / "limits.sqlite")
    yield origins
    origins.close()


def test_refused_origins_of_all_processes_are_counted_until_allowed(refused: RefusedOrigins, tmp_path: Path) -> None:
    with closing(RefusedOrigins(tmp_path / "limits.sqlite")) as another:
        for each, now_s in ((refused, 10), (another, 20), (refused, 15)):
            each.add("site", "https://new.example", now_s)
        another.add("site", "https://example.com", 30)  # allowed in the meantime
        another.add("other", "https://another.example", 40)
    assert refused.of(SITE) == [RefusedOrigin("https://new.example", 3, 15)]


def test_malformed_origin_is_not_recorded(refused: RefusedOrigins) -> None:
    malformed = "null * https://a.example/ https://a.example/b HTTPS://a.example javascript:alert(1)".split()
    for origin in (*malformed, "", 'https://a"><script>', "https://" + "a" * 300, "https://a.example\nb"):
        refused.add("site", origin, 10)
    assert refused.of(SITE) == []


def test_strangers_cannot_displace_the_origins_with_the_most_beacons(refused: RefusedOrigins) -> None:
    for number in range(1_000):
        refused.add("site", f"https://{number}.example", number)
        if number % 100 == 0:
            refused.add("site", "https://own.example", number)
            refused.add("site", "https://own.example", number)
    origins = refused.of(SITE)
    assert (len(origins), origins[0]) == (20, RefusedOrigin("https://own.example", 20, 900))


def test_refused_origin_is_not_recorded_while_another_process_writes(refused: RefusedOrigins, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "limits.sqlite", isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        refused.add("site", "https://new.example", 10)
        another.execute("ROLLBACK")
    assert refused.of(SITE) == []


def test_page_of_any_origin_may_read_an_error() -> None:
    assert cors.readable(request("https://other.example")) == {
        "Access-Control-Allow-Origin": "https://other.example",
        "Vary": "Origin",
    }
