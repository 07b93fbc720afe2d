"""Files of the overview's tables: the rows of the API's tables, for the period and filters of the page."""

import asyncio
import io
from datetime import date
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.responses import Response, StreamingResponse
from starlette.testclient import TestClient

from api.dashboard.pages.reading import export
from api.dashboard.web.view import View
from api.http.operation import CSV, PARQUET
from api.reports.report import Table
from tests.api.dashboard.days import before
from tests.api.dashboard.site import FIREFOX, Dashboard
from tests.processes.running import PROJECT, new_key

HITS = (
    {
        "path": "/=1+1?utm_medium=a&utm_campaign=b&utm_term=c&utm_content=d",
        "userAgent": FIREFOX,
        "referrer": "https://news.example/",
    },
    {"path": "/b", "userAgent": FIREFOX},
    {"path": "/b", "userAgent": "GPTBot/1.3"},
    {"path": "/b", "userAgent": "Googlebot/2.1"},
    {"path": "/c", "userAgent": "ClaudeBot/1.0"},
)
REPORTS = {
    "pages": "views?",
    "time": "series?interval=day",
    "operators": "breakdown?by=operator&traffic=ai",
    "agents": "breakdown?by=agent&traffic=ai",
    "purposes": "breakdown?by=purpose&traffic=ai",
    "referrers": "breakdown?by=referrerHost&traffic=human",
    "campaigns": "breakdown?by=utmSource&traffic=human",
    "media": "breakdown?by=utmMedium&traffic=human",
    "names": "breakdown?by=utmCampaign&traffic=human",
    "terms": "breakdown?by=utmTerm&traffic=human",
    "contents": "breakdown?by=utmContent&traffic=human",
    "devices": "breakdown?by=device&traffic=human",
    "browsers": "breakdown?by=browser&traffic=human",
    "systems": "breakdown?by=os&traffic=human",
    "sources": "breakdown?by=source",
}
"""Reports of the dashboard, and the report of the API with the same rows."""


@pytest.fixture(scope="module")
def viewer(dashboard: Dashboard) -> TestClient:
    dashboard.post_hits(*HITS)
    return dashboard.visitor("viewer")


def exported(client: TestClient, suffix: str, **parameters: str) -> bytes:
    response = client.get(f"/projects/{PROJECT}/export.{suffix}?{urlencode(parameters)}")
    assert response.status_code == 200, response.text
    content: bytes = response.content
    return content


@pytest.mark.long
def test_csv_is_that_of_the_api(dashboard: Dashboard, viewer: TestClient) -> None:
    headers = {"Authorization": f"Bearer {dashboard.key}", "Accept": "text/csv"}
    for report, in_api in REPORTS.items():
        url = f"/v1/analytics/{PROJECT}/{in_api}&dateFrom={before(6)}"
        expected = dashboard.client.get(url, headers=headers)
        content = exported(viewer, "csv", report=report, period="7d")
        assert content == expected.content, report
        assert content.count(b"\r\n") >= 2


def test_parquet_has_the_same_rows(dashboard: Dashboard, viewer: TestClient) -> None:
    rows = pq.read_table(io.BytesIO(exported(viewer, "parquet", path="/b"))).to_pylist()
    assert rows == [{"path": "/b", "human": 1, "ai": 1, "total": 2}]


def test_pages_are_in_the_order_of_the_page(viewer: TestClient) -> None:
    for sort, paths in (("path", ["/=1+1", "/b", "/c"]), ("ai", ["/b", "/c", "/=1+1"])):
        lines = exported(viewer, "csv", sort=sort).decode().splitlines()
        assert [line.split(",")[0] for line in lines] == ["path", *paths]


def test_text_that_a_spreadsheet_would_compute_gets_an_apostrophe(dashboard: Dashboard, viewer: TestClient) -> None:
    hits = [{"path": "/", "userAgent": FIREFOX, "referrer": "https://-news.example/"}]
    dashboard.post_hits(*hits, project="formula", key=new_key(dashboard.data, "formula"))
    csv = viewer.get("/projects/formula/export.csv?report=referrers").text
    assert "\r\n'-news.example,1" in csv


def test_file_has_a_name_and_is_not_cached_for_others(viewer: TestClient) -> None:
    for days, period in (
        ("period=all", f"until-{before(0)}"),
        ("period=today", before(0)),
        ("from=2026-09-01&to=2026-09-30", "2026-09-01_2026-09-30"),
    ):
        response = viewer.get(f"/projects/{PROJECT}/export.csv?report=referrers&{days}")
        expected = f'attachment; filename="{PROJECT}-referrers-{period}.csv"'
        assert response.headers["content-disposition"] == expected
    assert response.headers["vary"] == "Cookie, Accept-Encoding"
    assert "private" in response.headers["cache-control"]


@pytest.mark.parametrize("media_type", [CSV, PARQUET])
def test_rows_of_a_file_are_computed_once(media_type: str) -> None:
    computed = []

    def batches() -> list[pa.RecordBatch]:
        computed.append("rows")
        return [pa.record_batch({"path": ["/a", "/b"]})]

    period = SimpleNamespace(first=None, last=date(2026, 9, 30))
    moment, visit = SimpleNamespace(moment="now"), SimpleNamespace(share=None)
    view = SimpleNamespace(project=SimpleNamespace(id="docs"), snapshot=moment, period=period, visit=visit)
    response = export.table_file(cast("View", view), media_type, "pages", Table(pa.schema([("path", "str")]), batches))
    content = asyncio.run(body_of(response))
    assert computed == ["rows"]
    assert content == b"path\r\n/a\r\n/b\r\n" or pq.read_table(io.BytesIO(content)).num_rows == 2


async def body_of(response: Response) -> bytes:
    assert isinstance(response, StreamingResponse)
    return b"".join([bytes(chunk) async for chunk in response.body_iterator])  # type: ignore[arg-type]


@pytest.mark.long
def test_invalid_parameter_is_an_error_page(viewer: TestClient) -> None:
    queries = "report=user_agents report=<script> period=x zone=x traffic=x sort=x from=x interval=x"
    for query in queries.split():
        for suffix in ("csv", "parquet"):
            response = viewer.get(f"/projects/{PROJECT}/export.{suffix}?{query}")
            assert response.status_code == 400, query
            assert response.headers["content-type"].startswith("text/html")
            assert "<script>" not in response.text
