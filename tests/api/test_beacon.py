"""What a page may send without a key, and what a browser needs for it: CORS, the pixel and the script."""

import gzip
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.running import Running, new_key
from tests.waiting import each_alone

NO_TLS = False  # `verify`: a client that would verify reads all certificates first, for 20 ms
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
ORIGIN, OTHER_ORIGIN = "https://shop.example", "http://localhost:3000"
JSON, TEXT = "application/json", "text/plain"
NOTHING = {"totals": {"human": 0, "ai": 0, "total": 0}, "views": [], "hasMore": False}


class Page:
    """A browser at a page of a project of its own, and the owner who looks at the export."""

    def __init__(self, service: Running, project: str) -> None:
        self._key = new_key(service.data, project)
        self.client = httpx.Client(
            base_url=f"{service.url}/v1/analytics/{project}",
            headers={"User-Agent": FIREFOX},
            timeout=60,
            verify=NO_TLS,
        )

    def send(self, content: Any, kind: str = TEXT, **headers: str) -> httpx.Response:
        body = content if isinstance(content, bytes) else json.dumps(content)
        return self.client.post("hits", content=body, headers={"Content-Type": kind, **headers})

    def export(self) -> Any:
        answer = self.client.get("views", params={"limit": 250}, headers={"Authorization": f"Bearer {self._key}"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def counts(self) -> dict[str, tuple[int, int]]:
        """Human and AI views by path."""
        return {row["path"]: (row["human"], row["ai"]) for row in self.export()["views"]}


@pytest.fixture
def page(service: Running) -> Iterator[Page]:
    """Of a project that takes beacons from any origin."""
    made = Page(service, f"beacon-{secrets.token_hex(6)}")
    yield made
    made.client.close()


@pytest.fixture(scope="module")
def shop(service: Running) -> Iterator[Page]:
    """Of a project that takes beacons from the pages of two origins."""
    origins = ("--origin", ORIGIN, "--origin", OTHER_ORIGIN)
    assert service.run("project", "create", "shop", *origins).returncode == 0
    made = Page(service, "shop")
    yield made
    made.client.close()


def problem(answer: httpx.Response, status: int) -> Any:
    """The body of an RFC 9457 problem, of the status expected."""
    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    return answer.json()


@pytest.mark.parametrize("kind", [JSON, TEXT, "text/plain;charset=UTF-8", "application/json; charset=utf-8"])
def test_a_beacon_counts_under_the_browsers_own_user_agent(page: Page, kind: str) -> None:
    answer = page.send({"url": "https://example.com/a/?q=1#top"}, kind)
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1, "duplicates": 0, "rejected": []})
    assert (
        page.send({"path": "/a", "referrer": "https://example.org/"}, kind, **{"User-Agent": GPTBOT}).status_code == 202
    )
    assert page.counts() == {"/a": (1, 1)}


def test_a_beacon_without_a_user_agent_is_a_bots(page: Page) -> None:
    assert page.send({"path": "/a"}, **{"User-Agent": ""}).status_code == 202
    assert page.export() == NOTHING


def test_a_beacon_sent_again_is_counted_once_by_its_event_id(page: Page) -> None:
    answers = [page.send({"path": "/a", "eventId": "e1"}).json() for _ in range(2)]
    assert [(answer["accepted"], answer["duplicates"]) for answer in answers] == [(1, 0), (0, 1)]
    assert page.counts() == {"/a": (1, 0)}


@pytest.mark.parametrize("kind", [JSON, TEXT])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("userAgent", GPTBOT),
        ("timestamp", "2025-03-01T12:00:00Z"),
        ("status", 200),
        ("format", "md"),
        ("colour", "red"),
        ("projectId", "site"),
    ],
)
def test_what_only_a_server_may_say_and_unknown_fields_are_refused_by_name(
    page: Page, kind: str, field: str, value: Any
) -> None:
    found = problem(page.send({"path": "/a", field: value}, kind), 400)
    assert [each["pointer"] for each in found["errors"]] == [f"/{field}"]
    assert page.export() == NOTHING


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"path": 1}, "/path"),
        ({"path": ""}, "/path"),
        ({"url": "/a"}, "/url"),
        ({"url": "about:blank"}, "/url"),
        ({"path": "/a", "referrer": []}, "/referrer"),
        ({"path": "/a", "eventId": ""}, "/eventId"),
        ({"path": "/a\0"}, "/path"),
        ({"path": "/a", "a/b~c": 1}, "/a~1b~0c"),
    ],
)
def test_a_wrong_field_is_pointed_at(page: Page, body: Any, pointer: str) -> None:
    assert [each["pointer"] for each in problem(page.send(body), 400)["errors"]] == [pointer]
    assert page.export() == NOTHING


GOOD = b'{"path": "/a"}'
HOSTILE = {
    "array": b"[" + GOOD + b"]",
    "ndjson": GOOD + b"\n" + GOOD,
    "empty": b"",
    "blank": b" ",
    "null": b"null",
    "string": b'"/a"',
    "neither url nor path": b"{}",
    "both url and path": b'{"path": "/a", "url": "https://example.com/a"}',
    "form": b"path=/a",
    "NaN": b'{"path": NaN}',
    "bad UTF-8": b'{"path": "/\xff"}',
    "high surrogate": rb'{"path": "/\ud800"}',
    "low surrogate in eventId": rb'{"path": "/a", "eventId": "\udc00"}',
    "NUL in referrer": rb'{"path": "/a", "referrer": "\u0000"}',
    "open brackets": 60_000 * b"[",
    "brackets in a field": b'{"path": ' + 30_000 * b"[" + 30_000 * b"]" + b"}",
    "huge integer": b'{"path": ' + 50_000 * b"9" + b"}",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_anything_but_one_good_object_is_answered_400_and_leaves_nothing(page: Page, body: bytes) -> None:
    for kind in (JSON, TEXT):
        problem(page.send(body, kind), 400)
    assert page.export() == NOTHING


@pytest.mark.parametrize(
    "kind", ["application/x-ndjson", "text/html", "application/x-www-form-urlencoded", "text/plain; charset=utf-16"]
)
def test_another_media_type_is_refused(page: Page, kind: str) -> None:
    problem(page.send(GOOD, kind), 415)
    assert page.export() == NOTHING


@pytest.mark.parametrize("chunked", [False, True])
def test_a_beacon_is_small(page: Page, chunked: bool) -> None:
    """A real one is far under 32 KiB, and none is of a megabyte."""
    large = GOOD.ljust(1024 * 1024)
    pieces = iter([large[:-1], large[-1:]])  # httpx sends an iterator without a Content-Length
    problem(page.client.post("hits", content=pieces if chunked else large, headers={"Content-Type": TEXT}), 413)
    problem(page.send(gzip.compress(large), **{"Content-Encoding": "gzip"}), 413)
    assert page.export() == NOTHING
    assert page.send(GOOD.ljust(32 * 1024)).status_code == 202


def test_a_beacon_for_an_unknown_project_is_answered_404(service: Running) -> None:
    for project in ("nobody", "No-Slug", "%00", "a" * 1000):
        problem(httpx.post(f"{service.url}/v1/analytics/{project}/hits", json={"path": "/a"}), 404)


@pytest.mark.parametrize("kind", [JSON, TEXT])
@pytest.mark.parametrize("origin", [ORIGIN, OTHER_ORIGIN, None])
def test_a_beacon_of_an_allowed_origin_or_of_none_is_taken(shop: Page, origin: str | None, kind: str) -> None:
    before = shop.export()["totals"]["human"]
    answer = shop.send(GOOD, kind, **({"Origin": origin} if origin else {}))
    assert answer.status_code == 202
    assert answer.headers.get("access-control-allow-origin") == origin
    assert shop.export()["totals"]["human"] == before + 1


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://shop.example",
        "https://shop.example:8443",
        "https://www.shop.example",
        "https://shop.example.evil.example",
        "https://evil.example/https://shop.example",
        "https://xshop.example",
        "http://localhost:3001",
        "null",
        "*",
        "",
    ],
)
def test_a_beacon_of_another_origin_is_refused_and_not_kept(shop: Page, origin: str) -> None:
    before = shop.export()
    answer = shop.send(GOOD, Origin=origin)
    assert "does not accept beacons from the origin" in problem(answer, 403)["detail"]
    assert answer.headers.get("access-control-allow-origin", "") == origin, "the page cannot read why"
    assert shop.export() == before


def test_an_origin_does_not_matter_to_a_server_post(service: Running) -> None:
    with httpx.Client(headers={**service.auth, "Origin": "https://evil.example"}) as client:
        assert client.post(service.hits, json={"path": "/beacon/server"}).status_code == 202


def preflight(page: Page, **headers: str) -> httpx.Response:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    return page.client.options("hits", headers={**asked, **headers})


@pytest.mark.parametrize("origin", [ORIGIN, OTHER_ORIGIN])
def test_a_preflight_of_an_allowed_origin_is_answered(shop: Page, origin: str) -> None:
    answer = preflight(shop, Origin=origin)
    assert answer.status_code in (200, 204)
    assert answer.content == b""
    assert answer.headers["access-control-allow-origin"] == origin
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "content-type" in answer.headers["access-control-allow-headers"].lower()
    assert int(answer.headers["access-control-max-age"]) > 0
    assert "origin" in answer.headers["vary"].lower()


def test_a_preflight_of_another_origin_allows_nothing(shop: Page) -> None:
    answer = preflight(shop, Origin="https://evil.example")
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_preflight_for_an_unknown_project_is_answered_404(service: Running) -> None:
    problem(httpx.options(f"{service.url}/v1/analytics/nobody/hits", headers={"Origin": ORIGIN}), 404)


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (202, JSON, GOOD),
        (400, JSON, b"{}"),
        (400, TEXT, b"["),
        (413, JSON, 1024 * 1024 * b" "),
        (415, "text/html", GOOD),
    ],
)
def test_a_page_may_read_its_answer_also_when_it_is_an_error(shop: Page, status: int, kind: str, body: bytes) -> None:
    answer = shop.send(body, kind, Origin=ORIGIN)
    assert answer.status_code == status
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "origin" in answer.headers["vary"].lower()


def test_past_its_rate_an_address_waits_whichever_worker_answers(start: Callable[..., Running]) -> None:
    service = start(workers=2, READERSHIP_BEACONS_PER_MINUTE="5")

    def send(address: str, **headers: str) -> httpx.Response:
        """Over a connection of its own."""
        asked = {"User-Agent": FIREFOX, "X-Forwarded-For": address, **headers}
        return httpx.post(service.hits, content=GOOD, headers={"Content-Type": TEXT, **asked}, verify=NO_TLS)

    answers = [send("203.0.113.7") for _ in each_alone(service) for _ in range(4)]
    assert [answer.status_code for answer in answers] == 5 * [202] + 3 * [429]
    for answer in answers[5:]:
        problem(answer, 429)
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    of_page = send("203.0.113.7", Origin=ORIGIN)
    assert (of_page.status_code, of_page.headers["access-control-allow-origin"]) == (429, ORIGIN)
    assert send("198.51.100.1, 203.0.113.7").status_code == 429, "what a client writes itself was believed"
    pixel = service.hits.replace("/hits", "/pixel.gif?path=/a")
    problem(httpx.get(pixel, headers={"X-Forwarded-For": "203.0.113.7"}), 429)

    assert [send("203.0.113.8").status_code for _ in range(6)] == 5 * [202] + [429]
    assert [send("2001:db8::1").status_code for _ in range(6)] == 5 * [202] + [429]
    of_server = {**service.auth, "X-Forwarded-For": "203.0.113.7"}
    hit = {"path": "/a", "userAgent": FIREFOX}
    assert [httpx.post(service.hits, json=hit, headers=of_server).status_code for _ in range(10)] == 10 * [202]
    assert service.get()["totals"] == {"human": 25, "ai": 0, "total": 25}


def test_while_beacons_cannot_be_counted_they_are_turned_away_and_others_answered(service: Running, page: Page) -> None:
    limits = sqlite3.connect(service.data / "run" / "limits.sqlite", isolation_level=None)
    with closing(limits), ThreadPoolExecutor(1) as pool, httpx.Client(base_url=service.url, verify=NO_TLS) as other:
        limits.execute("BEGIN IMMEDIATE")
        sent = pool.submit(page.send, {"path": "/a"})
        while not sent.done():
            assert other.get("healthz", timeout=2).status_code == 200
        limits.execute("ROLLBACK")
    assert "locked" in problem(sent.result(), 503)["detail"]
    assert int(sent.result().headers["retry-after"]) > 0
    assert page.send({"path": "/b"}).status_code == 202
    assert page.counts() == {"/b": (1, 0)}


def test_the_pixel_counts_like_a_beacon(page: Page) -> None:
    answer = page.client.get("pixel.gif", params={"path": "/a/?q=1"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/gif")
    assert answer.content.startswith(b"GIF89a")
    assert "no-store" in answer.headers["cache-control"]
    by_url = {"url": "https://example.com/a", "referrer": "https://example.org/", "eventId": "e1"}
    for _ in range(2):
        assert page.client.get("pixel.gif", params=by_url, headers={"User-Agent": GPTBOT}).status_code == 200
    assert page.counts() == {"/a": (1, 1)}


def test_the_pixel_is_refused_to_a_page_of_another_origin_and_not_kept(shop: Page) -> None:
    before = shop.export()
    answer = shop.client.get("pixel.gif", params={"path": "/a"}, headers={"Origin": "https://evil.example"})
    problem(answer, 403)
    assert "access-control-allow-origin" not in answer.headers
    assert shop.export() == before


@pytest.mark.parametrize("query", ["path=/pixel", "path="])
def test_a_page_of_an_allowed_origin_may_read_what_the_pixel_answers(shop: Page, query: str) -> None:
    answer = shop.client.get(f"pixel.gif?{query}", headers={"Origin": ORIGIN})
    assert answer.status_code == (200 if query == "path=/pixel" else 400)
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["vary"] == "Origin"


def test_a_head_of_the_pixel_counts_nothing(page: Page) -> None:
    answer = page.client.head("pixel.gif", params={"path": "/a"})
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "image/gif", b"")
    assert page.export() == NOTHING


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("", {"path"}),
        ("path=", {"path"}),
        ("path=/a&url=https://example.com/a", {"path"}),
        ("url=/a", {"url"}),
        ("path=/a%00", {"path"}),
        ("path=/" + 3000 * "a", {"path"}),
        ("path=/a&path=/b", {"path"}),
        ("path=/a&colour=red", {"colour"}),
        ("path=/a&userAgent=GPTBot", {"userAgent"}),
        ("path=/a&timestamp=2025-03-01", {"timestamp"}),
        ("path=/a&eventId=" + 1000 * "e", {"eventId"}),
        ("path=/a&colour=red&path=/b", {"path", "colour"}),
    ],
)
def test_bad_parameters_of_the_pixel_are_named(page: Page, query: str, parameters: set[str]) -> None:
    found = problem(page.client.get(f"pixel.gif?{query}"), 400)
    assert {each.get("parameter") for each in found["errors"]} == parameters
    assert page.export() == NOTHING


def test_the_pixel_of_an_unknown_project_is_answered_404(service: Running) -> None:
    problem(httpx.get(f"{service.url}/v1/analytics/nobody/pixel.gif?path=/a"), 404)


def test_the_script_is_served_small_and_any_page_may_load_it(service: Running) -> None:
    url = f"{service.url}/beacon.js"
    plain = httpx.get(url, headers={"Accept-Encoding": "identity"})
    assert plain.status_code == 200
    assert plain.headers["content-type"].partition(";")[0] in ("text/javascript", "application/javascript")
    assert "content-encoding" not in plain.headers
    assert b"data-project" in plain.content
    with httpx.stream("GET", url, headers={"Accept-Encoding": "gzip, br"}) as answer:
        packed = b"".join(answer.iter_raw())
        assert answer.headers["content-encoding"] == "gzip"
    assert len(packed) < 1_500
    assert gzip.decompress(packed) == plain.content
    assert "accept-encoding" in plain.headers["vary"].lower()
    assert plain.headers["cross-origin-resource-policy"] == "cross-origin"


def test_a_script_that_the_browser_has_is_not_sent_again(service: Running) -> None:
    url = f"{service.url}/beacon.js"
    tag = httpx.get(url).headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = httpx.get(url, headers={"If-None-Match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert httpx.get(url, headers={"If-None-Match": '"other"'}).status_code == 200
