"""Events by servers and by pages: fields, limits, rejections and de-duplication, which they share with hits."""

import gzip
import json
from typing import Any

import httpx
import pytest

from tests.api.reports.client import FIREFOX, GPTBOT, client_of, problem
from tests.api.routes.test_hits import GZIP, JSON, NDJSON, counts, lines, receipt
from tests.processes.running import Running

EVENT = {"name": "Signup", "path": "/welcome/", "userAgent": FIREFOX}
COLUMNS = "name, path, traffic, agent, source, interactive, props"
ORIGIN = "https://shop.example"
LONG = {f"{number:02}" * 150: "x" * 2_000 for number in range(30)}
STORED = ["Signup", "/welcome", "human", None, "server", True, None]


def project_of(site: httpx.Client) -> str:
    return site.base_url.path.rstrip("/").rpartition("/")[2]


def stored(service: Running, site: httpx.Client, columns: str = COLUMNS) -> list[list[Any]]:
    query = f"SELECT {columns} FROM events WHERE project_id = '{project_of(site)}' ORDER BY name, source"
    answer = service.run("sql", query, "--format", "json")
    return [[*row.values()] for row in json.loads(answer.stdout)]


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        (json.dumps(EVENT).encode(), JSON, [STORED]),
        (json.dumps([EVENT, {**EVENT, "name": "Z"}]).encode(), JSON, [STORED, ["Z", *STORED[1:]]]),
        (gzip.compress(lines(EVENT, EVENT)), {**NDJSON, **GZIP}, [STORED, STORED]),
        (
            lines(
                {"name": "A", "url": "https://example.com/a?b#c", "userAgent": GPTBOT, "interactive": False},
                {**EVENT, "name": "ü" * 120, "props": {"plan": "pro", "seats": 5, "ratio": 0.5, "trial": True}},
                {"name": " bot\u00a0", "path": "/", "props": {}},
            ),
            NDJSON,
            [
                ["A", "/a", "ai", "GPTBot", "server", False, None],
                ["bot", "/", "bot", None, "server", True, None],
                ["ü" * 120, *STORED[1:-1], '{"plan": "pro", "seats": "5", "ratio": "0.5", "trial": "true"}'],
            ],
        ),
        (json.dumps({**EVENT, "props": LONG}).encode(), JSON, [[*STORED[:-1], json.dumps(LONG)]]),
    ],
    ids=["object", "array", "gzip", "fields", "largest properties"],
)
def test_events_of_a_server_are_stored_and_are_no_page_views(
    service: Running, site: httpx.Client, body: bytes, headers: dict[str, str], expected: list[list[Any]]
) -> None:
    assert site.post("events", content=body, headers=headers).json() == receipt(len(expected))
    assert stored(service, site) == expected
    assert counts(site) == {}


def test_invalid_event_is_rejected_with_its_field_and_reason_and_the_other_is_stored(site: httpx.Client) -> None:
    invalid: list[tuple[dict[str, Any], str, str]] = [
        ({"name": ""}, "name", "must not be empty"),
        ({"name": "x" * 121}, "name", "has 121 characters; at most 120 are accepted"),
        ({"name": " "}, "name", "must not be empty"),
        ({"name": " engagement"}, "name", "is a name of the website script"),
        ({"name": "a\u200bb"}, "name", "has a character that is not printable"),
        ({"name": "a\nb"}, "name", "has a control character or a lone surrogate"),
        ({"props": {"x" * 301: "a"}}, "props", "has 301 characters; at most 300 are accepted"),
        ({"props": {"a": "x" * 2_001}}, "props", "has 2001 characters; at most 2000 are accepted"),
        ({"props": {str(number): "a" for number in range(31)}}, "props", "has 31 properties; at most 30 are accepted"),
        ({"props": {"a": ["b"]}}, "props", "Expected "),
        ({"plan": "pro"}, "plan", "unknown field; known"),
        ({"url": "https://example.com/"}, "path", "give one of `url` and `path`, not both"),
        ({"address": "x"}, "address", "is not an IPv4 or IPv6 address without a port"),
    ]
    answer = site.post("events", json=[EVENT, *({**EVENT, **change} for change, _, _ in invalid)]).json()
    rejected = answer.pop("rejected")
    assert answer == {"accepted": 1, "duplicates": 0}
    for index, (each, (_, field, reason)) in enumerate(zip(rejected, invalid, strict=True), start=1):
        assert (each["index"], each["field"]) == (index, field)
        assert each["reason"].startswith(reason[:20])


def test_event_ids_and_keys_count_once_apart_from_those_of_hits_and_of_pages(site: httpx.Client) -> None:
    hit, event = {"path": "/", "eventId": "same"}, {**EVENT, "eventId": "same"}
    assert site.post("hits", json=hit).json() == receipt(1)
    assert [site.post("events", json=event).json() for _ in range(2)] == [receipt(1), receipt(0, 1)]
    headers = {"User-Agent": FIREFOX, "Content-Type": "text/plain"}
    with httpx.Client(base_url=site.base_url, headers=headers) as page:
        sent = json.dumps({"name": "Signup", "path": "/", "eventId": "same"})
        assert [page.post("events", content=sent).json() for _ in range(2)] == [receipt(1), receipt(0, 1)]
    key = {"Idempotency-Key": "k"}
    assert [site.post("events", json=EVENT, headers=key).json() for _ in range(2)] == [receipt(1)] * 2
    problem(site.post("hits", json=hit, headers=key), 422)
    mixed, key = [{"path": "/"}, EVENT], {"Idempotency-Key": "mixed"}
    assert site.post("hits", json=mixed, headers=key).json()["accepted"] == 1
    problem(site.post("events", json=mixed, headers=key), 422)


def test_event_of_a_page_follows_the_rules_of_beacons(service: Running) -> None:
    assert service.run("project", "create", "shop-events", "--origin", ORIGIN).returncode == 0
    headers = {"User-Agent": FIREFOX, "Origin": ORIGIN}
    with client_of(service, "shop-events") as site, httpx.Client(base_url=site.base_url, headers=headers) as page:
        sent = {"name": "Signup", "url": f"{ORIGIN}/{'x' * 600}", "props": {"plan": "pro"}}
        text = {"Content-Type": "text/plain"}
        answer = page.post("events", content=json.dumps(sent), headers=text)
        assert (answer.status_code, answer.json()["cut"]) == (202, 1)
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert page.options("events", headers={"Access-Control-Request-Method": "POST"}).status_code == 204
        problem(page.post("events", json=sent, headers={"Origin": "https://other.example"}), 403)
        problem(page.post("events", json={**sent, "url": "https://other.example/"}), 403)
        problem(page.post("events", json={**sent, "userAgent": "x"}), 400)
        problem(page.post("events", json={**sent, "props": {str(each): "x" * 1_999 for each in range(5)}}), 400)
        time = {"name": "engagement", "url": f"{ORIGIN}/a", "props": {"ms": 9}, "interactive": False, "eventId": "1"}
        assert [page.post("events", json=time).json()["duplicates"] for _ in range(2)] == [0, 0]
        of_time = ["engagement", "/a", "human", None, "beacon", False, '{"ms": "9"}']
        assert stored(service, site) == [
            ["Signup", "/" + "x" * 511, "human", None, "beacon", True, '{"plan": "pro"}'], of_time, of_time,
        ]  # fmt: skip
        assert (
            stored(service, site, "visitor IS NULL, event_id IS NULL AND name <> 'Signup'")[1:] == [[False, True]] * 2
        )
        metrics = httpx.get(f"{service.url}/metrics", headers=service.auth).text
        assert 'readership_events_total{outcome="accepted",source="beacon"}' in metrics


def test_all_events_rejected_is_a_problem_that_points_at_the_fields(site: httpx.Client) -> None:
    body = problem(site.post("events", json={"path": "/"}), 400)
    assert body["detail"] == "every event was rejected; nothing was stored"
    assert problem(site.post("events", json=[]), 400)["detail"] == "the body contains no event"
