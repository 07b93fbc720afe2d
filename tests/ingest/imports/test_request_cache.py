"""Cache of parsed request lines: the answers of the parser, for all threads, within a bounded size."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from ingest.formats.page_filter import DEFAULT_PAGES, Pages
from ingest.imports import request_cache
from ingest.imports.request_cache import EXCLUDED, LOAD, METHOD, NOT_A_PAGE, PAGE, UNPARSED, RequestCache
from warehouse.columns.hits import PARAMETERS

PAGES = Pages(include=("/feed.xml",), exclude=("/admin*",))
CASES: list[tuple[str, int, str | None, dict[str, str]]] = [
    ("GET /a/ HTTP/1.1", PAGE, "/a", {}),
    ("GET /a?utm_source=x&b HTTP/2", PAGE, "/a", {"utm_source": "x"}),
    ("GET /a?b&utm_medium=y HTTP/2", PAGE, "/a", {"utm_medium": "y"}),
    ("GET /a?b=1 HTTP/1.0", PAGE, "/a", {}),
    ("GET /feed.xml?page=2 HTTP/1.1", PAGE, "/feed.xml", {}),
    ("POST /a HTTP/1.1", METHOD, None, {}),
    ("GET /admin/x HTTP/1.1", EXCLUDED, None, {}),
    ("GET /a.css?v=3 HTTP/1.1", LOAD, "", {}),
    ("GET /favicon.ico HTTP/1.1", NOT_A_PAGE, None, {}),
    ("GET /\\x41 HTTP/1.1", UNPARSED, None, {}),
    ("GET /a", UNPARSED, None, {}),
    ("", UNPARSED, None, {}),
]


def parse(cache: RequestCache, *requests: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = cache.parse(pa.array(requests, pa.string())).to_pylist()
    return rows


def test_each_request_has_its_outcome_path_and_parameters_in_order() -> None:
    kinds = {LOAD: "asset", NOT_A_PAGE: "other", PAGE: "page", METHOD: "page", EXCLUDED: "page"}
    expected = [
        {
            "outcome": outcome,
            "kind": "feed" if path == "/feed.xml" else kinds.get(outcome),
            "path": path,
            **dict.fromkeys(PARAMETERS),
            **read,
        }
        for _, outcome, path, read in CASES
    ]
    requests = [request for request, *_ in CASES]
    cache = RequestCache(PAGES)
    assert parse(cache, *requests, *requests) == expected * 2
    assert parse(cache, *reversed(requests)) == expected[::-1]


def test_threads_get_the_rows_of_their_own_requests() -> None:
    cache = RequestCache(DEFAULT_PAGES)
    batches = [[(first + number) % 700 for number in range(200)] for first in range(0, 2_100, 7)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda batch: parse(cache, *(f"GET /{number} HTTP/1.1" for number in batch)), batches))
    for batch, rows in zip(batches, results, strict=True):
        assert [row["path"] for row in rows] == [f"/{number}" for number in batch]


def test_full_cache_is_replaced_and_freed_without_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = Pages(include=("/of-this-test",))
    cache = request_cache.request_cache(pages)
    parse(cache, *(f"GET /{number} HTTP/1.1" for number in range(21)))
    assert request_cache.request_cache(pages) is cache
    monkeypatch.setattr(request_cache, "CACHED_MAX", 20)
    old = weakref.ref(cache)
    gc.disable()
    try:
        del cache
        assert request_cache.request_cache(pages) is not old()
        assert old() is None
    finally:
        gc.enable()


def test_cache_with_too_many_characters_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_cache, "CACHED_CHARACTERS_MAX", 30)
    cache = RequestCache(DEFAULT_PAGES)
    parse(cache, "GET /1 HTTP/1.1")
    parse(cache, "GET /1 HTTP/1.1", "GET /2 HTTP/1.1")
    assert not cache.is_full
    parse(cache, "GET /3 HTTP/1.1")
    assert cache.is_full


def test_queries_without_parameters_share_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_cache, "CACHED_MAX", 1)
    cache = RequestCache(DEFAULT_PAGES)
    rows = parse(cache, *(f"GET /a?b={number} HTTP/1.1" for number in range(100)), "GET /a?c?d#1 HTTP/1.1")
    assert {row["path"] for row in rows} == {"/a"}
    assert not cache.is_full
