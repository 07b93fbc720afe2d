"""A client of a project's reports, the hits that it posts, and the tables that it reads."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pyarrow.parquet as pq

from tests.processes.running import Running, new_key

NO_TLS = False  # value of `verify`; True reads all certificates, which takes 20 ms
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.3; +https://openai.com/gptbot"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
CLAUDE_USER = (
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; Claude-User/1.0; +Claude-User@anthropic.com"
)
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
NDJSON = "application/x-ndjson"
COUNTS = ("human", "ai", "bot", "total")
NOTHING: dict[str, Any] = {
    "totals": {"human": 0, "ai": 0, "total": 0},
    "views": [],
    "hasMore": False,
    "measured": {"human": "none", "ai": "none", "bot": "none"},
}
"""Views of a project without hits."""


@contextmanager
def client_of(service: Running, project: str) -> Iterator[httpx.Client]:
    """Yield a client of a project; `hits` and `views` are relative to its URL."""
    headers = {"Authorization": f"Bearer {new_key(service.data, project)}"}
    url = f"{service.url}/v1/analytics/{project}"
    with httpx.Client(base_url=url, headers=headers, timeout=60, verify=NO_TLS) as client:
        yield client


def post(site: httpx.Client, *hits: tuple[str, str] | tuple[str, str, str]) -> None:
    """Post hits, each a path, a user agent and optionally a time."""
    rows = [dict(zip(("path", "userAgent", "timestamp"), hit, strict=False)) for hit in hits]
    response = site.post("hits", json=rows)
    assert (response.status_code, response.json()["accepted"]) == (202, len(rows)), response.text


def problem(response: httpx.Response, status: int) -> Any:
    """Assert that a response is an RFC 9457 problem with this status, and return its body."""
    assert response.status_code == status, response.text[:500]
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["requestId"]) == (status, response.headers["x-request-id"])
    assert body["type"]
    assert body["title"]
    assert body["detail"]
    return body


def table(response: httpx.Response) -> list[dict[str, Any]]:
    """Return the rows of a table in any format. An empty cell of CSV is None, and counts are numbers."""
    assert response.status_code == 200, response.text[:500]
    media_type = response.headers["content-type"].partition(";")[0]
    if media_type == NDJSON:
        return [json.loads(line) for line in response.text.splitlines()]
    if media_type == PARQUET:
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(response.content)).to_pylist()
        return rows
    lines = csv.DictReader(io.StringIO(response.text, newline=""))
    return [{name: _value(name, cell) for name, cell in row.items()} for row in lines]


def _value(name: str, cell: str) -> int | str | None:
    return int(cell) if name in COUNTS and cell else cell or None
