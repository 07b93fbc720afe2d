"""Page views from pages without a key: beacon, CORS and pixel."""

import gzip
import json
import secrets
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from api.routes.beacon import evidence_of
from tests.api.reports.client import FIREFOX, GPTBOT, NO_TLS, NOTHING, problem
from tests.processes.running import Running, new_key

ORIGIN, OTHER_ORIGIN = "https://shop.example", "http://localhost:3000"
JSON, TEXT = "application/json", "text/plain"


class Page:
    """A browser on a page of a project, and the export of the project."""

    def __init__(self, service: Running, project: str) -> None:
        self._key = new_key(service.data, project)
        self.client = httpx.Client(
            base_url=f"{service.url}/v1/analytics/{project}", headers={"User-Agent": FIREFOX}, timeout=60, verify=NO_TLS
        )

    def send(self, content: Any, kind: str = TEXT, **headers: str) -> httpx.Response:
        body = content if isinstance(content, bytes) else json.dumps(content)
        return self.client.post("hits", content=body, headers={"Content-Type": kind, **headers})

    def export(self) -> Any:
        response = self.client.get("views", params={"limit": 250}, headers={"Authorization": f"Bearer {self._key}"})
        assert response.status_code == 200, response.text
        return response.json()

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the human and AI views by path."""
        return {row["path"]: (row["human"], row["ai"]) for row in self.export()["views"]}


@pytest.fixture
def page(service: Running) -> Iterator[Page]:
    """Return a page of a new project that allows any origin."""
    page = Page(service, f"beacon-{secrets.token_hex(6)}")
    yield page
    page.client.close()


@pytest.fixture(scope="module")
def shop(service: Running) -> Iterator[Page]:
    """Return a page of a project that allows two origins."""
    origins = ("--origin", ORIGIN, "--origin", OTHER_ORIGIN)
    assert service.run("project", "create", "shop", *origins).returncode == 0
    page = Page(service, "shop")
    yield page
    page.client.close()


def test_beacon_is_classified_by_the_user_agent_of_its_request(page: Page) -> None:
    for kind in (JSON, TEXT, "text/plain;charset=UTF-8", "application/json; charset=utf-8"):
        response = page.send({"url": "https://example.com/a/?q=1#top"}, kind)
        assert (response.status_code, response.json()) == (202, {"accepted": 1, "duplicates": 0, "rejected": []})
        by_agent = page.send({"path": "/a", "referrer": "https://example.org/"}, kind, **{"User-Agent": GPTBOT})
        assert by_agent.status_code == 202
    assert page.counts() == {"/a": (4, 4)}


def test_long_path_of_a_beacon_is_cut_and_counted(page: Page) -> None:
    assert page.send({"path": "/" + 2000 * "a"}).json() == {"accepted": 1, "duplicates": 0, "rejected": [], "cut": 1}
    assert page.client.get("pixel.gif", params={"path": "/" + 600 * "a"}).status_code == 200
    assert page.counts() == {"/" + 511 * "a": (2, 0)}


def test_fields_of_servers_and_unknown_fields_are_rejected(page: Page) -> None:
    fields: dict[str, Any] = {"userAgent": GPTBOT, "timestamp": "2025-03-01T12:00:00Z", "status": 200, "format": "md"}
    for field, value in (fields | {"colour": "red", "projectId": "site"}).items():
        for kind in (JSON, TEXT):
            body = problem(page.send({"path": "/a", field: value}, kind), 400)
            assert [each["pointer"] for each in body["errors"]] == [f"/{field}"]
    assert page.export() == NOTHING


VALID = b'{"path": "/a"}'
HOSTILE = [
    b"[" + VALID + b"]", b"", b"{}", b'{"path": "/a", "url": "https://example.com/a"}', b'{"path": "/\xff"}',
    rb'{"path": "/a", "eventId": "\udc00"}', b'{"path": ' + 30_000 * b"[" + 30_000 * b"]" + b"}",
    b'{"path": ' + 50_000 * b"9" + b"}",
]  # fmt: skip
"""Bodies that are refused; `tests/ingest/hits/test_body.py` has more, and random ones."""


def test_invalid_body_is_a_400_and_stores_nothing(page: Page) -> None:
    for body in HOSTILE:
        for kind in (JSON, TEXT):
            problem(page.send(body, kind), 400)
    assert page.export() == NOTHING


def test_other_media_type_is_rejected(page: Page) -> None:
    form = "application/x-www-form-urlencoded"
    for kind in ("application/x-ndjson", "text/html", form, "text/plain; charset=utf-16"):
        problem(page.send(VALID, kind), 415)
    assert page.export() == NOTHING


def test_large_beacon_is_rejected(page: Page) -> None:
    """Check sizes far above that of a browser's beacon, and 32 KiB, which is accepted."""
    large = VALID.ljust(1024 * 1024)
    pieces = iter([large[:-1], large[-1:]])  # httpx sends an iterator without a Content-Length
    for content in (large, pieces):
        problem(page.client.post("hits", content=content, headers={"Content-Type": TEXT}), 413)
    problem(page.send(gzip.compress(large), **{"Content-Encoding": "gzip"}), 413)
    assert page.export() == NOTHING
    assert page.send(VALID.ljust(32 * 1024)).status_code == 202


def test_beacon_for_an_unknown_project_is_a_404(service: Running) -> None:
    for project in ("nobody", "No-Slug", "%00", "a" * 1000):
        problem(httpx.post(f"{service.url}/v1/analytics/{project}/hits", json={"path": "/a"}), 404)


def test_beacon_of_an_allowed_origin_or_without_one_is_stored(shop: Page) -> None:
    before = shop.export()["totals"]["human"]
    for origin in (ORIGIN, OTHER_ORIGIN, None):
        for kind in (JSON, TEXT):
            response = shop.send(VALID, kind, **({"Origin": origin} if origin else {}))
            assert response.status_code == 202
            assert response.headers.get("access-control-allow-origin") == origin
    assert shop.export()["totals"]["human"] == before + 6


def test_beacon_of_another_origin_is_rejected(shop: Page) -> None:
    before = shop.export()
    for origin in (
        "https://evil.example", "http://shop.example", "https://shop.example:8443", "https://www.shop.example",
        "https://shop.example.evil.example", "https://evil.example/https://shop.example", "https://xshop.example",
        "http://localhost:3001", "null", "*", "",
    ):  # fmt: skip
        response = shop.send(VALID, Origin=origin)
        assert "does not accept beacons from the origin" in problem(response, 403)["detail"], origin
        assert response.headers.get("access-control-allow-origin", "") == origin, "the page cannot read the reason"
    assert shop.export() == before


def test_post_of_a_server_may_have_any_origin(service: Running) -> None:
    with httpx.Client(headers={**service.auth, "Origin": "https://evil.example"}) as client:
        assert client.post(service.hits, json={"path": "/beacon/server"}).status_code == 202


def preflight(page: Page, **headers: str) -> httpx.Response:
    requested = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    return page.client.options("hits", headers={**requested, **headers})


def test_preflight_allows_the_origins_of_the_project_and_no_other(shop: Page) -> None:
    for origin in (ORIGIN, OTHER_ORIGIN):
        response = preflight(shop, Origin=origin)
        assert response.status_code in (200, 204)
        assert response.content == b""
        assert response.headers["access-control-allow-origin"] == origin
        assert "POST" in response.headers["access-control-allow-methods"]
        assert "content-type" in response.headers["access-control-allow-headers"].lower()
        assert int(response.headers["access-control-max-age"]) > 0
        assert "origin" in response.headers["vary"].lower()
    response = preflight(shop, Origin="https://evil.example")
    assert not [name for name in response.headers if name.startswith("access-control-")]


def test_page_may_read_responses_and_errors(shop: Page) -> None:
    for status, kind, body in (
        (202, JSON, VALID),
        (400, JSON, b"{}"),
        (400, TEXT, b"["),
        (413, JSON, 1024 * 1024 * b" "),
        (415, "text/html", VALID),
    ):
        response = shop.send(body, kind, Origin=ORIGIN)
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert "origin" in response.headers["vary"].lower()
    for query, status in (("path=/pixel", 200), ("path=", 400)):
        response = shop.client.get(f"pixel.gif?{query}", headers={"Origin": ORIGIN})
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert response.headers["vary"] == "Origin, Accept-Encoding"


@pytest.mark.long
def test_beacon_that_cannot_be_counted_is_a_503_and_other_requests_are_answered(service: Running, page: Page) -> None:
    limits = sqlite3.connect(service.data / "run" / "limits.sqlite", isolation_level=None)
    with closing(limits), ThreadPoolExecutor(1) as pool, httpx.Client(base_url=service.url, verify=NO_TLS) as other:
        limits.execute("BEGIN IMMEDIATE")
        sent = pool.submit(page.send, {"path": "/a"})
        answered = 0
        while not sent.done():
            assert other.get("healthz", timeout=60).status_code == 200
            answered += not sent.done()
        limits.execute("ROLLBACK")
    assert answered > 0, "while the beacon waits"
    assert "locked" in problem(sent.result(), 503)["detail"]
    assert int(sent.result().headers["retry-after"]) > 0
    assert page.send({"path": "/b"}).status_code == 202
    assert page.counts() == {"/b": (1, 0)}


def test_pixel_counts_like_a_beacon(page: Page) -> None:
    response = page.client.get("pixel.gif", params={"path": "/a/?q=1"})
    assert (response.status_code, response.headers["content-type"]) == (200, "image/gif")
    assert response.content.startswith(b"GIF89a")
    assert "no-store" in response.headers["cache-control"]
    by_url = {"url": "https://example.com/a", "referrer": "https://example.org/", "eventId": "e1"}
    for _ in range(2):
        assert page.client.get("pixel.gif", params=by_url, headers={"User-Agent": GPTBOT}).status_code == 200
    assert page.counts() == {"/a": (1, 1)}


def test_pixel_for_a_page_of_another_origin_is_rejected(shop: Page) -> None:
    before = shop.export()
    response = shop.client.get("pixel.gif", params={"path": "/a"}, headers={"Origin": "https://evil.example"})
    problem(response, 403)
    assert "access-control-allow-origin" not in response.headers
    assert shop.export() == before


def test_pixel_on_a_page_of_another_site_counts_no_visitor(shop: Page) -> None:
    before = shop.export()
    for headers in ({"Referer": "https://evil.example/"}, {"Sec-Fetch-Site": "cross-site"}):
        problem(shop.client.get("pixel.gif", params={"path": "/a"}, headers=headers), 403)
    assert shop.export() == before
    own = {"Referer": f"{ORIGIN}/", "Sec-Fetch-Site": "cross-site"}
    assert shop.client.get("pixel.gif", params={"path": "/a"}, headers=own).status_code == 200


def test_url_of_another_site_is_refused(shop: Page) -> None:
    before = shop.export()
    problem(shop.send({"url": "https://evil.example/a"}, Origin=ORIGIN), 403)
    problem(shop.client.get("pixel.gif", params={"url": "https://evil.example/a"}), 403)
    assert shop.export() == before
    assert shop.send({"url": f"{ORIGIN}/a"}).status_code == 202


@pytest.mark.parametrize(
    ("base_url", "url"),
    [("", None), ("https://example.com/stats", "https://example.com/stats/v1/analytics/shop/pixel.gif?path=/a%20b")],
)
def test_signature_is_checked_for_the_url_of_the_service_and_not_for_the_host_that_the_client_sends(
    base_url: str, url: str | None
) -> None:
    state = SimpleNamespace(settings=SimpleNamespace(base_url=base_url, country_header=""))
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/analytics/shop/pixel.gif",
        "query_string": b"path=/a%20b",
        "headers": [(b"host", b"another-site.example"), (b"signature-input", b'g=("@authority")')],
        "client": ("192.0.2.7", 1234),
        "state": {"running": state},
    }
    evidence = evidence_of(Request(scope))
    assert (evidence.address, evidence.url, evidence.method) == ("192.0.2.7", url, "GET")
    assert evidence.headers is not None
    assert evidence.headers["signature-input"] == 'g=("@authority")'


def test_country_is_read_from_the_header_that_the_owner_named() -> None:
    for name, headers, expected in (
        ("cf-ipcountry", {"cf-ipcountry": "de", "accept-language": "de-AT,en"}, ("DE", "de-AT")),
        ("cf-ipcountry", {"cf-ipcountry": "T1"}, (None, None)),
        ("", {"cf-ipcountry": "DE", "accept-language": "en"}, (None, "en")),
    ):
        state = SimpleNamespace(settings=SimpleNamespace(base_url="", country_header=name))
        pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
        evidence = evidence_of(Request({"type": "http", "headers": pairs, "client": None, "state": {"running": state}}))
        assert (evidence.country, evidence.language) == expected


def test_head_of_the_pixel_counts_nothing(page: Page) -> None:
    response = page.client.head("pixel.gif", params={"path": "/a"})
    assert (response.status_code, response.headers["content-type"], response.content) == (200, "image/gif", b"")
    assert page.export() == NOTHING


@pytest.mark.long
def test_invalid_parameters_of_the_pixel_are_faults(page: Page) -> None:
    for query, parameters in {
        "": {"path"},
        "path=": {"path"},
        "path=/a&url=https://example.com/a": {"path"},
        "url=/a": {"url"},
        "path=/a%00": {"path"},
        "path=/" + 9000 * "a": {"path"},
        "path=/a&path=/b": {"path"},
        "path=/a&colour=red": {"colour"},
        "path=/a&userAgent=GPTBot": {"userAgent"},
        "path=/a&timestamp=2025-03-01": {"timestamp"},
        "path=/a&eventId=" + 1000 * "e": {"eventId"},
        "path=/a&colour=red&path=/b": {"path", "colour"},
    }.items():
        body = problem(page.client.get(f"pixel.gif?{query}"), 400)
        assert {each.get("parameter") for each in body["errors"]} == parameters, query
    assert page.export() == NOTHING
