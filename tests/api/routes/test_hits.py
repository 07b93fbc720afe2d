"""Posts of servers: formats, limits, rejections, de-duplication, and hostile bodies."""

import gzip
import hashlib
import json
import re
import secrets
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from api.cli.main import main
from ingest.visitors.address_free import address_free
from tests.api.reports.client import FIREFOX, GPTBOT, NO_TLS, NOTHING, problem
from tests.processes.running import Running

JSON, NDJSON = {"Content-Type": "application/json"}, {"Content-Type": "application/x-ndjson"}
GZIP = {"Content-Encoding": "gzip"}
MIB = 1024 * 1024


def view(path: str, **fields: Any) -> dict[str, Any]:
    """Return a hit that counts as human."""
    return {"path": path, "userAgent": FIREFOX, **fields}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def export(site: httpx.Client, **parameters: str) -> Any:
    """Return the export, by default up to the last supported time."""
    response = site.get("views", params={"limit": "250", "dateTo": "9999-01-01", **parameters})
    assert response.status_code == 200, response.text
    return response.json()


def counts(site: httpx.Client, **parameters: str) -> dict[str, tuple[int, int]]:
    """Return the human and AI views by path."""
    return {row["path"]: (row["human"], row["ai"]) for row in export(site, **parameters)["views"]}


def receipt(accepted: int, duplicates: int = 0) -> dict[str, Any]:
    return {"accepted": accepted, "duplicates": duplicates, "rejected": []}


def post_rows(site: httpx.Client, rows: list[Any], *, as_lines: bool) -> httpx.Response:
    return site.post(
        "hits", content=lines(*rows) if as_lines else json.dumps(rows), headers=NDJSON if as_lines else JSON
    )


ROWS = [view("/a"), {"path": "/a", "userAgent": GPTBOT}, view("/b")]


@pytest.mark.parametrize("packing", ["plain", "gzip", "gzip in several members"])
def test_object_array_and_ndjson_are_stored_with_and_without_gzip(site: httpx.Client, packing: str) -> None:
    for media_type, body, hits in (
        (JSON, json.dumps(ROWS[0]).encode(), 1),
        (JSON, json.dumps(ROWS).encode(), 3),
        (NDJSON, lines(*ROWS), 3),
    ):
        parts = [body[i : i + 50] for i in range(0, len(body), 50)] if packing == "gzip in several members" else [body]
        content = body if packing == "plain" else b"".join(map(gzip.compress, parts))
        response = site.post("hits", content=content, headers=media_type | ({} if packing == "plain" else GZIP))
        assert (response.status_code, response.json()) == (202, receipt(hits))
        assert response.headers["content-type"] == "application/json"
    assert counts(site) == {"/a": (3, 2), "/b": (2, 0)}


def test_media_type_may_have_a_charset_and_any_case(site: httpx.Client) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"'):
        assert site.post("hits", json=view("/a"), headers={"Content-Type": kind}).json() == receipt(1)


def test_every_field_of_a_server_post_is_accepted(site: httpx.Client) -> None:
    full = {
        "url": "https://example.com/full?utm_source=news#top", "referrer": "https://www.google.com/",
        "userAgent": FIREFOX, "timestamp": "2025-03-01T12:00:00Z", "status": 200, "format": "text/markdown",
        "eventId": "e-1", "address": "192.0.2.7", "accept": "text/html", "headers": {"accept-language": "en"},
    }  # fmt: skip
    assert site.post("hits", json=full).json() == receipt(1)
    assert counts(site, dateFrom="2025-03-01", dateTo="2025-03-02") == {"/full": (1, 0)}


BAD_ROWS: list[tuple[Any, str | None]] = [
    (view("/bad", colour="red"), "colour"),
    ({"userAgent": FIREFOX}, "path"),
    (7, None),
    (view("/bad", status=600), "status"),
    (None, None),
    (view("/bad", timestamp="yesterday"), "timestamp"),
]


@pytest.mark.parametrize("as_lines", [False, True])
def test_invalid_rows_are_reported_and_the_others_stored(site: httpx.Client, as_lines: bool) -> None:
    rows = [view("/good"), *(row for row, _ in BAD_ROWS), view("/good")]
    response = post_rows(site, rows, as_lines=as_lines)
    assert response.status_code == 202
    body = response.json()
    assert (body["accepted"], body["duplicates"]) == (2, 0)
    assert [(each["index"], each["field"]) for each in body["rejected"]] == [
        (index, field) for index, (_, field) in enumerate(BAD_ROWS, start=1)
    ]
    assert all(each["reason"] and set(each) == {"index", "field", "reason"} for each in body["rejected"])
    assert counts(site) == {"/good": (2, 0)}


def test_problem_points_at_each_row_if_all_are_invalid(site: httpx.Client) -> None:
    both = (view("/a", colour=1), view("/a", status=0))
    for headers, body, pointers in (
        (JSON, json.dumps(both).encode(), ["/0/colour", "/1/status"]),
        (NDJSON, lines(*both), ["/0/colour", "/1/status"]),
        (JSON, b"[7]", ["/0"]),
        (JSON, json.dumps(view("/a", status=0)).encode(), ["/status"]),
        (JSON, b'[{"a/b~c": 1}]', ["/0/a~1b~0c"]),
    ):
        error = problem(site.post("hits", content=body, headers=headers), 400)
        assert [each["pointer"] for each in error["errors"]] == pointers
        assert all(each["detail"] for each in error["errors"])
    assert export(site) == NOTHING


def test_values_at_the_limits_are_accepted(site: httpx.Client) -> None:
    rows = [
        view("/" + 2047 * "a"),
        *(view("/s", status=status) for status in (100, 200, 304, 599)),
        *(view("/f", format=format) for format in ("html", "md", "text/html", "application/xhtml+xml")),
        view("/e", eventId="e"),
    ]
    assert site.post("hits", json=rows).json() == receipt(10)
    assert counts(site) == {"/" + 2047 * "a": (1, 0), "/s": (4, 0), "/f": (4, 0), "/e": (1, 0)}


def test_longer_texts_are_cut_and_counted(service: Running, site: httpx.Client) -> None:
    def cut(field: str) -> float:
        text = httpx.get(f"{service.url}/metrics", verify=NO_TLS, timeout=60).text
        numbers = re.findall(rf'^readership_cut_hits_total\{{field="{field}"\}} (.*)$', text, re.MULTILINE)
        return sum(map(float, numbers))

    before = [cut(field) for field in ("path", "referrer", "userAgent")]
    rows = [view("/" + 3000 * "a", referrer="https://example.org/" + 2000 * "b"), view("/a")]
    assert site.post("hits", json=rows).json() == {**receipt(2), "cut": 1}
    assert counts(site) == {"/" + 2047 * "a": (1, 0), "/a": (1, 0)}
    assert [cut(field) for field in ("path", "referrer", "userAgent")] == [before[0] + 1, before[1] + 1, before[2]]


@pytest.mark.long
@pytest.mark.parametrize("as_lines", [False, True])
def test_ten_thousand_hits_are_accepted_and_one_more_is_too_large(site: httpx.Client, as_lines: bool) -> None:
    problem(post_rows(site, 10_001 * [view("/a")], as_lines=as_lines), 413)
    assert export(site) == NOTHING
    assert post_rows(site, 10_000 * [view("/a")], as_lines=as_lines).json() == receipt(10_000)
    assert counts(site) == {"/a": (10_000, 0)}


def padded(size: int) -> bytes:
    """Return a body of this size with one valid hit."""
    return json.dumps(view("/padded")).encode().ljust(size)


def chunked(body: bytes) -> Iterator[bytes]:
    """Yield the body in two chunks, which httpx sends without a Content-Length."""
    for start in range(0, len(body), 64 * 1024):
        yield body[start : start + 64 * 1024]


@pytest.mark.parametrize("send", [bytes, chunked])
def test_eight_mib_are_accepted_and_one_more_byte_is_too_large(site: httpx.Client, send: Any) -> None:
    problem(site.post("hits", content=send(padded(8 * MIB + 1)), headers=JSON), 413)
    assert export(site) == NOTHING
    assert site.post("hits", content=send(padded(8 * MIB)), headers=JSON).json() == receipt(1)


@pytest.mark.long
def test_gzip_bomb_is_too_large(site: httpx.Client) -> None:
    bombs = (gzip.compress(padded(size)) for size in (100 * MIB, 8 * MIB + 1))
    for bomb in (*bombs, gzip.compress(padded(MIB)) + 8 * gzip.compress(MIB * b" ")):
        problem(site.post("hits", content=bomb, headers={**JSON, **GZIP}), 413)
    assert export(site) == NOTHING


@pytest.mark.long
def test_body_of_empty_gzip_members_does_not_block_the_service(site: httpx.Client) -> None:
    empty = gzip.compress(b"")
    body = (8 * MIB // len(empty)) * empty
    problem(site.post("hits", content=body, headers={**JSON, **GZIP}, timeout=20), 400)


@pytest.mark.long
def test_classification_of_a_large_post_does_not_delay_other_requests(site: httpx.Client, service: Running) -> None:
    tail = 750 * "x"
    rows = [view("/many", userAgent=f"{FIREFOX} {secrets.token_hex(4)} {tail}") for _ in range(9_000)]
    body = gzip.compress(lines(*rows), 1)
    answered = 0
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=service.url, verify=NO_TLS) as other:
        sent = pool.submit(site.post, "hits", content=body, headers={**NDJSON, **GZIP})
        while not sent.done():
            assert other.get("healthz").status_code == 200
            answered += 1
    assert sent.result().json() == receipt(9_000)
    assert answered > 20  # 4 to 12 if the event loop classifies


def test_other_media_type_or_content_encoding_is_rejected(site: httpx.Client) -> None:
    body = json.dumps(view("/a"))
    kinds = "text/plain text/html application/xml multipart/form-data;boundary=x application/jsonx json"
    for kind in ("", *kinds.split()):
        response = site.post("hits", content=body, headers={"Content-Type": kind} if kind else {})
        assert "application/json" in problem(response, 415)["detail"]
    for encoding in ("br", "deflate", "zstd", "gzip, gzip", "x"):
        headers = {**JSON, "Content-Encoding": encoding}
        problem(site.post("hits", content=gzip.compress(body.encode()), headers=headers), 415)
    assert export(site) == NOTHING


def field(name: str, literal: str) -> bytes:
    """Return the body of a valid hit with this JSON as a field's value."""
    good = {"path": '"/hostile"', "userAgent": json.dumps(FIREFOX), name: literal}
    return ("{" + ", ".join(f'"{key}": {value}' for key, value in good.items()) + "}").encode()


DEEP = 100_000
HOSTILE = [
    b"",
    b"null",
    b'"/hostile"',
    json.dumps(view("/hostile")).encode()[:-1],
    json.dumps(view("/hostile")).encode("utf-16"),
    field("path", '"/a"').replace(b"/a", b"/\xff"),
    field("path", '"/a"').replace(b"/a", b"/\0"),
    field("path", DEEP * "[" + DEEP * "]"),
    field("status", "NaN"),
    field("status", 5_000 * "9"),
    field("userAgent", r'"\ud800"'),
    field("eventId", r'"\u0000"'),
    DEEP * b'{"path":',
]
"""Bodies that are refused; `tests/ingest/hits/test_body.py` has more, and random ones."""


def test_hostile_body_is_a_400_and_stores_nothing(site: httpx.Client) -> None:
    for body in HOSTILE:
        problem(site.post("hits", content=body, headers=JSON), 400)
        problem(site.post("hits", content=body, headers=NDJSON), 400)
    assert export(site) == NOTHING


def test_hostile_line_does_not_affect_other_lines(site: httpx.Client) -> None:
    hostile = [body for body in HOSTILE if body.strip() and b"\n" not in body]
    body = b"\n".join([lines(view("/good")).strip(), *hostile, lines(view("/good")).strip()])
    response = site.post("hits", content=body, headers=NDJSON)
    assert response.status_code == 202, response.text[:500]
    assert response.json()["accepted"] == 2
    assert [each["index"] for each in response.json()["rejected"]] == list(range(1, len(hostile) + 1))
    assert counts(site) == {"/good": (2, 0)}


INSTANTS = {
    "1995-01-01T00:00:00Z": ("1995-01-01", "1995-01-02"),
    "2024-02-29T23:59:59.999999Z": ("2024-02-29", "2024-03-01"),
    "2024-03-01T00:00:00Z": ("2024-03-01", "2024-03-02"),
    "2024-07-01T01:30:00+02:00": ("2024-06-30", "2024-07-01"),
    "2024-12-31T23:30:00-01:00": ("2025-01-01", "2025-01-02"),
    "2025-06-01T23:59:59.999999": ("2025-06-01", "2025-06-02"),
    "2025-06-02T00:00:00": ("2025-06-02", "2025-06-03"),
}


@pytest.mark.long
def test_each_time_is_counted_on_its_utc_day_before_and_after_the_load(service: Running, site: httpx.Client) -> None:
    rows = [view(f"/{index}", timestamp=instant) for index, instant in enumerate(INSTANTS)]
    assert site.post("hits", json=rows).json() == receipt(len(rows))

    def by_day() -> list[dict[str, tuple[int, int]]]:
        return [counts(site, dateFrom=day, dateTo=next_day) for day, next_day in INSTANTS.values()]

    expected = [{f"/{index}": (1, 0)} for index in range(len(INSTANTS))]
    assert by_day() == expected
    assert CliRunner().invoke(main, ["--data", str(service.data), "flush"]).exit_code == 0
    assert by_day() == expected


def test_timestamp_may_be_five_minutes_in_the_future_and_not_six(site: httpx.Client) -> None:
    now = datetime.now(UTC)
    ahead = [(now + timedelta(minutes=minutes)).isoformat() for minutes in (5, 6, 60 * 24 * 365)]
    response = site.post("hits", json=[view("/ahead", timestamp=instant) for instant in ahead]).json()
    assert response["accepted"] == 1
    assert [(each["index"], each["field"]) for each in response["rejected"]] == [(1, "timestamp"), (2, "timestamp")]
    assert counts(site) == {"/ahead": (1, 0)}


def test_event_id_is_counted_once_in_a_post_and_in_later_ones(site: httpx.Client) -> None:
    first = site.post("hits", json=[view("/a", eventId="e1"), view("/a", eventId="e1"), view("/a", eventId="e2")])
    assert (first.status_code, first.json()) == (202, receipt(2, duplicates=1))
    again = site.post("hits", json=[view("/a", eventId="e1"), view("/b", eventId="e2"), view("/a", eventId="e3")])
    assert (again.status_code, again.json()) == (202, receipt(1, duplicates=2))
    third = site.post("hits", content=lines(view("/a", eventId="e3"), view("/a", eventId="E3")), headers=NDJSON)
    assert (third.status_code, third.json()) == (202, receipt(1, duplicates=1))
    assert counts(site) == {"/a": (4, 0)}


def test_event_id_and_idempotency_key_of_concurrent_posts_are_counted_once(site: httpx.Client) -> None:
    rows, key = [view("/b"), view("/c")], {"Idempotency-Key": "k1"}
    with ThreadPoolExecutor(8) as threads:
        by_id = list(threads.map(lambda _: site.post("hits", json=view("/a", eventId="e1")).json(), range(24)))
        by_key = list(threads.map(lambda _: site.post("hits", json=rows, headers=key).json(), range(24)))
    assert [sum(each[name] for each in by_id) for name in ("accepted", "duplicates")] == [1, 23]
    assert by_key == 24 * [receipt(2)]
    assert counts(site) == {"/a": (1, 0), "/b": (1, 0), "/c": (1, 0)}


def test_repeated_idempotency_key_gets_the_first_response(site: httpx.Client) -> None:
    rows = [view("/a"), view("/a", status=0), view("/b", eventId="e1"), view("/b", eventId="e1")]
    first, again = (site.post("hits", json=rows, headers={"Idempotency-Key": "k1"}) for _ in range(2))
    assert first.status_code == again.status_code == 202
    assert (first.json()["accepted"], first.json()["duplicates"], len(first.json()["rejected"])) == (2, 1, 1)
    assert again.json() == first.json()
    assert counts(site) == {"/a": (1, 0), "/b": (1, 0)}


def test_fingerprint_of_a_body_is_keyed_without_addresses_and_older_ones_are_recognised(
    service: Running, site: httpx.Client
) -> None:
    content, key = json.dumps(view("/a", address="20.171.206.5")).encode(), {**JSON, "Idempotency-Key": "k1"}
    unkeyed = hashlib.blake2b(content, digest_size=16).digest()
    project = str(site.base_url).rstrip("/").rpartition("/")[2]
    assert site.post("hits", content=content, headers=key).json() == receipt(1)
    with closing(sqlite3.connect(service.data / "hot.sqlite", timeout=30, isolation_level=None)) as hot:
        query = "SELECT fingerprint FROM answers WHERE project_id = ?"
        [(stored,)] = hot.execute(query, (project,)).fetchall()
        with closing(sqlite3.connect(service.data / "control.sqlite", timeout=30)) as control:
            [(secret,)] = control.execute("SELECT secret FROM store_secrets").fetchall()
        text = address_free(content)
        assert b"20.171.206.5" not in text
        assert stored == hashlib.blake2b(text, digest_size=16, key=secret).digest()
        problem(site.post("hits", json=view("/b"), headers=key), 422)
        for earlier in (unkeyed, hashlib.blake2b(unkeyed, digest_size=16, key=secret).digest()):
            hot.execute("UPDATE answers SET fingerprint = ? WHERE project_id = ?", (earlier, project))
            assert site.post("hits", content=content, headers=key).json() == receipt(1)
    problem(site.post("hits", json=view("/b"), headers=key), 422)
    assert counts(site) == {"/a": (1, 0)}


def test_long_or_empty_idempotency_key_is_rejected(site: httpx.Client) -> None:
    for key in (256 * "k", ""):
        response = site.post("hits", json=view("/a"), headers={"Idempotency-Key": key})
        assert "Idempotency-Key" in problem(response, 400)["detail"]
    assert export(site) == NOTHING


def test_user_agent_of_the_sender_is_not_classified(site: httpx.Client) -> None:
    site.post("hits", json=[view("/person"), {"path": "/ai", "userAgent": GPTBOT}], headers={"User-Agent": GPTBOT})
    site.post("hits", json={"path": "/ai", "userAgent": GPTBOT}, headers={"User-Agent": FIREFOX})
    assert counts(site) == {"/person": (1, 0), "/ai": (0, 2)}
