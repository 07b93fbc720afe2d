"""The functions that are fuzzed. Each takes bytes, and raises an error only for a fault."""

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from starlette.requests import Request
from starlette.testclient import TestClient

from api import app, settings
from api.http.problems import Problem
from api.reports.parameters import select
from api.reports.records import REPORTS
from ingest.errors import BodyTooLarge, InvalidBody, InvalidField, UnknownFormat
from ingest.formats import detect
from ingest.formats.page_filter import DEFAULT_PAGES
from ingest.hits import body
from ingest.hits.hit import beacon_hit
from ingest.imports import chunk
from ingest.imports.chunk import Block
from ingest.imports.request_cache import RequestCache
from tests.ingest.imports.columns.test_combined import by_the_parser, counts, rows
from tests.processes.running import new_key
from tests.warehouse.site import Site, view
from warehouse.errors import WarehouseError
from warehouse.lake import delta_log, delta_table
from warehouse.query.time_range import FIRST, LAST
from warehouse.tables import HITS_TABLE

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
NOW_US = int(NOW.timestamp()) * 1_000_000
QUERIES = {each.name.encode(): each.parameters for each in REPORTS}
OPEN = ExitStack()
"""The app and the lake of the targets. A process that does not close them hangs at its end."""
UNIFORM_FORMATS = ("combined", "common", "vhost-combined")
"""Formats whose blocks are parsed by columns, and whose parsers remember nothing."""


def hits(data: bytes) -> None:
    """Parse the body of a post: each row becomes a hit or a rejection, and the result is the same a second time."""
    kind, content = data[:1], data[1:]
    with suppress(InvalidBody, BodyTooLarge, InvalidField):
        if kind == b"g":
            content = body.gunzip(content, 10_000)
        if kind == b"b":
            beacon_hit(body.decode_beacon(content), "curl/8", NOW)
            return
        parsed = body.parse_post(content, kind == b"n", NOW_US)
        assert parsed == body.parse_post(content, kind == b"n", NOW_US)
        indices = [each.index for each in parsed.rejected]
        assert indices == sorted(set(indices))
        if kind == b"n":
            assert len(parsed.hits) + len(indices) == sum(1 for line in content.split(b"\n") if line.strip())


def logs(data: bytes) -> None:
    """Parse a log in the detected format as one block; lines parsed one by one must give the same hits."""
    lines = data.split(b"\n")
    with suppress(UnknownFormat):
        format = detect.detect([line for line in lines if line.strip()][:100])
        result = chunk.parse(Block(data, False, True), format, RequestCache(DEFAULT_PAGES))
        whole = lines[:-1] if data.endswith(b"\n") or not data else lines
        assert result.lines == len(whole)
        assert result.lines == result.hits.num_rows + sum(result.skipped.values())
        if format.name in UNIFORM_FORMATS and data.endswith(b"\n"):
            requests = sum(map(counts, result.requests), Counter())
            expected = by_the_parser(whole, format.name, DEFAULT_PAGES)
            assert (Counter(rows(result.hits)), result.skipped, requests) == expected


def queries(data: bytes) -> None:
    """Parse the query of a report: its range is within the calendar, or the problem is `invalid-parameter`."""
    name, _, query = data.partition(b" ")
    if name not in QUERIES:
        return
    try:
        request = Request({"type": "http", "query_string": query, "headers": [], "method": "GET"})
        selection = select(request, "site", QUERIES[name])
    except Problem as problem:
        if problem.kind != "invalid-parameter":
            raise
        return
    assert FIRST <= selection.start <= LAST
    assert selection.end is None or selection.start <= selection.end <= LAST


def requests(data: bytes) -> None:
    """Send a request to the whole app: no answer is 500, and each refusal of the API is a problem."""
    head, _, content = data.partition(b"\n\n")
    first, *fields = head.split(b"\n")
    method, _, target = first.decode("latin-1").partition(" ")
    pairs = [field.decode("latin-1").partition(":") for field in fields]
    client, key = _client()
    headers = {"Authorization": f"Bearer {key}", **{name: value.strip() for name, _, value in pairs}}
    try:
        url = httpx.URL("http://localhost" + target)
        request = client.build_request(method, url, headers=headers, content=content)
    except (httpx.InvalidURL, ValueError, TypeError):
        return  # no client can send it
    if urlsplit(str(url)).hostname != "localhost" or not method.isascii() or not method.isalpha():
        return
    answer = client.send(request, follow_redirects=False)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400 and url.path.startswith("/v1/") and method != "HEAD":
        assert answer.headers["content-type"].startswith("application/problem+json"), answer.headers
        assert answer.json()["status"] == answer.status_code


def commits(data: bytes) -> None:
    """Read a table whose last commit has these bytes: its files are read, or the error is one of the lake."""
    site, commit = _lake()
    commit.write_bytes(data)
    with suppress(WarehouseError):
        table = delta_table.open_table(site.root, HITS_TABLE)
        files = delta_table.list_files(table, HITS_TABLE)
        assert all(each.rows >= 0 and each.size >= 0 for each in files)
        delta_log.read(site.root / "hits")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "hits": hits,
    "logs": logs,
    "queries": queries,
    "requests": requests,
    "commits": commits,
}


@cache
def _folder() -> Path:
    return Path(OPEN.enter_context(tempfile.TemporaryDirectory(prefix="readership-fuzzing-")))


@cache
def _client() -> tuple[TestClient, str]:
    """Return a client of an app in this process, and a key of its project `site`."""
    data = _folder() / "data"
    environ = {"READERSHIP_BEACONS_PER_MINUTE": "1000000000", "READERSHIP_JOBS_AT_ONCE": "0"}
    key = new_key(data, environ=environ)
    return OPEN.enter_context(TestClient(app.create(settings.read(environ, data)))), key


@cache
def _lake() -> tuple[Site, Path]:
    """Return a lake with one load, and the path of the next commit of `hits`."""
    site = Site(_folder() / "lake")
    OPEN.callback(site.close)
    site.post(view("/a"))
    site.load()
    return site, delta_log.commit_file(site.root / "hits", delta_log.read(site.root / "hits").newest + 1)
