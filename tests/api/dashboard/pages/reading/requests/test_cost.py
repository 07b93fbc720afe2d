"""The page of what readers cost: its numbers are those of the API, and what was not logged is a dash."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api.dashboard.html import Html
from tests.api.dashboard.site import FIREFOX, Dashboard, opened
from tests.processes.running import PROJECT, new_key, readership_process

DASH = "\N{EN DASH}"
ASKED = [  # path, status, user agent, bytes and seconds
    ("/robots.txt", 200, "GPTBot/1.3", 1_000, 0.001),
    ("/a", 200, "GPTBot/1.3", 2_499_000, 0.09),
    ("/a", 429, "GPTBot/1.3", None, None),
    ("/a", 200, FIREFOX, 7_500_000, None),
]


@cache
def asked_at() -> datetime:
    return datetime.now(UTC) - timedelta(hours=2)


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = tmp_path_factory.mktemp("cost")
    lines = (
        {"ts": asked_at().timestamp(), "level": "info", "logger": "http.log.access", "status": status, "size": size,
         "duration": seconds, "request": {"method": "GET", "uri": path, "headers": {"User-Agent": [agent]}}}
        for path, status, agent, size, seconds in ASKED
    )  # fmt: skip
    (folder / "caddy.log").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with opened(folder / "data", {"READERSHIP_PRICE_PER_GB": "200 EUR"}) as opened_dashboard:
        imported = readership_process(
            "--data", str(opened_dashboard.data), "import", PROJECT, str(folder / "caddy.log")
        )
        assert imported.returncode == 0
        yield opened_dashboard


def page(viewer: TestClient, query: str = "", days: int = 7, project: str = PROJECT) -> Html:
    response = viewer.get(f"/projects/{project}/cost?period={days}d&{query}")
    assert response.status_code == 200, response.text
    return Html(response.text)


def test_agents_have_requests_data_times_and_refusals(viewer: TestClient) -> None:
    shown = page(viewer)
    sentence = "AI made 75% of the requests and took 25% of the data, 2.5 MB for €0.50. 1 was refused."
    assert f"4 requests, 10 MB for €2.00. {sentence}" in shown.text
    assert "The size is known for 75% of the requests, the response time for 50%." in shown.text
    assert "Of your logs" not in shown.text
    gptbot, people = shown.rows("Requests by agent")
    assert gptbot[:9] == ["GPTBot", "3", "75%", "2.5\N{NO-BREAK SPACE}MB", "25%", "€0.50", "< 100 ms", "1", "no"]
    name = "People and readers without a name"
    assert people[:9] == [name, "1", "25%", "7.5\N{NO-BREAK SPACE}MB", "75%", "€1.50", DASH, "0", DASH]


@pytest.mark.long
def test_rows_are_those_that_were_chosen(viewer: TestClient) -> None:
    for query, by, names in (
        ("by=operator", "operator", ["OpenAI", "People and other bots"]),
        ("by=kind", "kind", ["page", "robots"]),
        ("by=status&traffic=ai", "status", ["200", "429"]),
        ("agent=GPTBot", "agent", ["GPTBot"]),
        ("by=x", "agent", ["GPTBot", "People and readers without a name"]),
    ):
        assert [row[0] for row in page(viewer, query).rows(f"Requests by {by}")] == names


def test_name_of_every_row_is_a_filter(viewer: TestClient) -> None:
    day = f"{asked_at():%Y-%m-%d}"
    for by, name, rows in (
        ("kind", "robots", [["GPTBot", "1"]]),
        ("date", day, [["GPTBot", "3"], ["People and readers without a name", "1"]]),
        ("status", "429", [["GPTBot", "1"]]),
        ("source", "log", [["GPTBot", "3"], ["People and readers without a name", "1"]]),
    ):
        text = viewer.get(f"/projects/{PROJECT}/cost?period=7d&by={by}").text
        [link] = re.findall(f'href="([^"]*)">{name}</a>', text)
        filtered = Html(viewer.get(link.replace("&amp;", "&")).text)
        assert [row[:2] for row in filtered.rows("Requests by agent")] == rows, by
    shown = page(viewer, "kind=robots&by=status")
    assert [row[:2] for row in shown.rows("Requests by status")] == [["200", "1"]]
    assert "Kind: robots" in shown.text
    assert all("kind=robots" in link for link in shown.links() if "by=agent" in link or "traffic=ai" in link)
    answer = viewer.get(f"/projects/{PROJECT}/cost.csv?period=7d&by=kind&kind=robots")
    assert [line.split(",")[0] for line in answer.text.splitlines()] == ["kind", "robots"]
    assert viewer.get(f"/projects/{PROJECT}/cost?kind=x").status_code == 400
    assert "There is no kind “x”" in viewer.get(f"/projects/{PROJECT}/cost?kind=x").text


def test_file_has_the_rows_of_the_page(viewer: TestClient) -> None:
    answer = viewer.get(f"/projects/{PROJECT}/cost.csv?period=7d&by=kind")
    assert [line.split(",")[:3] for line in answer.text.splitlines()] == [
        ["kind", "requests", "bytes"],
        ["page", "3", "9999000"],
        ["robots", "1", "1000"],
    ]


def test_project_without_a_log_is_told_where_cost_is_known_from(dashboard: Dashboard, viewer: TestClient) -> None:
    assert "Import access logs" in page(viewer, "agent=none").text


@pytest.mark.long
def test_share_with_a_size_is_shown_by_source_if_there_are_two(dashboard: Dashboard, viewer: TestClient) -> None:
    at = (asked_at() - timedelta(days=20)).isoformat()
    hit = {"path": "/posted", "timestamp": at, "status": 200, "userAgent": "GPTBot/1.3"}
    dashboard.post_hits(hit)
    text = page(viewer, days=30).text
    assert "The size is known for 60% of the requests, the response time for 40%." in text
    assert "Of your logs: 75% and 50%." in text
    assert "Of your server: 0% and 0%. Your server can post" in text


@pytest.mark.long
def test_log_without_times_is_named(dashboard: Dashboard, viewer: TestClient, tmp_path: Path) -> None:
    new_key(dashboard.data, "combined")
    (tmp_path / "log").write_text(
        f'192.0.2.1 - - [{asked_at():%d/%b/%Y:%H:%M:%S} +0000] "GET /a HTTP/1.1" 200 9 "-" "curl"\n'
    )
    command = ("--data", str(dashboard.data), "import", "combined", str(tmp_path / "log"))
    assert readership_process(*command).returncode == 0
    text = page(viewer, project="combined").text
    assert (
        "The size is known for 100% of the requests, the response time for 0%. Your logs have no response times."
        in text
    )
    assert "no response times" not in page(viewer).text


def test_numbers_of_times_and_caches_name_their_requests(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "edge")
    hit = {"path": "/a", "status": 200, "userAgent": "GPTBot/1.3", "bytes": 9, "timestamp": asked_at().isoformat()}
    known = {"durationMs": 3, "cache": "hit"}, {"cache": "miss"}, {"cache": "hit"}, {}
    dashboard.post_hits(*({**hit, **each} for each in known), project="edge", key=key)
    shown = page(viewer, project="edge")
    [row] = shown.rows("Requests by agent")
    assert row[6:8] == ["< 5 ms", "67%"]
    titles = {attributes.get("title") for tag, attributes in shown.tags if tag == "span"}
    assert {"Of 1 requests with a time", "Of 3 requests with the state of the cache"} <= titles
    assert "the response time for 25%, the state of the cache for 75%." in shown.text
    assert "the state of the cache" not in page(viewer).text


def test_refusals_are_a_dash_if_only_served_pages_were_sent(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "served")
    hit = {"path": "/a", "userAgent": "GPTBot/1.3", "timestamp": asked_at().isoformat()}
    dashboard.post_hits(*({**hit, "status": status} for status in (200, 206, 304)), project="served", key=key)
    shown = page(viewer, project="served")
    assert "Refusals are not known" in shown.text
    assert [row[6] for row in shown.rows("Requests by agent")] == [DASH]
    for query in ("traffic=human", "agent=GPTBot&kind=robots"):  # of a log with a refusal
        filtered = page(viewer, query)
        assert "Refusals are not known" not in filtered.text
        assert [row[7 - ("human" in query)] for row in filtered.rows("Requests by agent")] == ["0"]


def test_views_without_a_status_are_not_called_no_requests(dashboard: Dashboard, viewer: TestClient) -> None:
    key = new_key(dashboard.data, "middleware")
    hit = {"path": "/a", "userAgent": "GPTBot/1.3", "timestamp": asked_at().isoformat()}
    dashboard.post_hits(hit, {**hit, "userAgent": FIREFOX}, project="middleware", key=key)
    text = page(viewer, project="middleware").text
    assert "Your server posted 2 views in this period, none with an HTTP status ." in text
    assert "No requests" not in text
    assert "Your server posted 1 view in" in page(viewer, "agent=GPTBot", project="middleware").text
    for query in ("source=log", "kind=page", "agent=none", "status=429"):
        assert "No requests in this period" in page(viewer, query, project="middleware").text, query
