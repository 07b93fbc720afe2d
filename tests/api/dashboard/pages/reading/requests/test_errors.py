"""The page of errors: the rows of the API, its filters and days, and what it shows without errors."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from api.dashboard.pages.reading.requests import errors
from api.dashboard.web.visit import ProjectVisit
from tests.api.dashboard.days import before, today
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.ai.ai_traffic import ATTACK, FIREFOX, open_page
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import PROJECT
from tests.warehouse.site import Site, view
from warehouse.control import projects

GPTBOT, CLAUDEBOT, GOOGLEBOT = "GPTBot/1.3", "ClaudeBot/1.0", "Googlebot/2.1"
# Page, requests, agents and statuses.
GONE, BOTS, DOWN = ("/gone", "4", "2", "404"), ("/gone", "1", "1", "404"), ("/café", "1", "1", "503")
READ = ("/gone", "3", "1", "404")
UNNAMED = ("Not stored", "1", "\N{EN DASH}", "404")
GPT, GOOGLE = ("GPTBot", "3"), ("Googlebotother bot", "1")
"""Agent and requests. Between the agent and the word beside it is a space on the page."""


def hit(path: str, agent: str, days: int, status: int) -> dict[str, Any]:
    return {"path": path, "userAgent": agent, "timestamp": f"{before(days)}T00:00:01Z", "status": status}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("errors") / "data") as dashboard:
        dashboard.post_hits(
            *(hit("/gone", GPTBOT, days, 404) for days in (1, 2, 3)),
            hit("/gone", GOOGLEBOT, 2, 404),
            hit("/caf%C3%A9", CLAUDEBOT, 40, 503),
            hit("/random", "", 1, 404),
            hit("/gone", FIREFOX, 1, 404),
        )
        yield dashboard


@pytest.fixture(scope="module")
def viewer(site: Dashboard) -> TestClient:
    return site.visitor("viewer")


def rows_of(page: Html, by: str = "page") -> list[tuple[str, ...]]:
    """Return the cells of each row before its trend."""
    return [tuple("".join(cell.split("  ")) for cell in row[:4]) for row in page.rows(f"Errors by {by}")]


@pytest.mark.long
def test_filters_and_days_choose_rows(viewer: TestClient) -> None:
    chosen: list[tuple[dict[str, str | int], list[tuple[str, ...]]]] = [
        ({}, [GONE, UNNAMED]), ({"period": "all"}, [GONE, DOWN, UNNAMED]), ({"traffic": "ai"}, [READ]),
        ({"traffic": "bot"}, [BOTS, UNNAMED]), ({"agent": "Googlebot"}, [BOTS]),
        ({"operator": "Anthropic", "period": "all"}, [DOWN]), ({"purpose": "training"}, [READ]),
        ({"status": "503", "period": "90d"}, [DOWN]), ({"path": "/go*"}, [GONE]), ({"path": "*on*"}, [GONE]),
        ({"path": "*x*"}, []), ({"browser": "Firefox", "source": "beacon"}, [GONE, UNNAMED]),
        ({"from": 3, "to": 3}, [("/gone", "1", "1", "404")]),
    ]  # fmt: skip
    for parameters, expected in chosen:
        assert rows_of(open_page(viewer, "/errors", **parameters)) == expected, parameters
    by_agent: list[dict[str, str | int]] = [{"path": "/gone"}, {"by": "agent", "path": "/g*"}]
    for parameters in by_agent:
        page = open_page(viewer, "/errors", **parameters)
        assert [row[:2] for row in rows_of(page, "agent")] == [GPT, GOOGLE]
        assert any("agent=Googlebot" in link for link in page.links())


def test_trend_has_a_bar_for_each_day_with_requests(viewer: TestClient) -> None:
    page = viewer.get(f"/projects/{PROJECT}/errors", params={"period": "7d", "traffic": "ai"}).text
    assert "Requests by day, at most 1" in page
    assert re.findall(r'<rect class="ai" x="([^"]+)"', page) == ["3.1", "4.1", "5.1"]


def test_each_chosen_value_is_a_chip_that_removes_it(viewer: TestClient) -> None:
    page = open_page(viewer, "/errors", agent="GPTBot", status="404")
    chips = {attributes.get("aria-label"): str(attributes.get("href")) for tag, attributes in page.tags if tag == "a"}
    assert chips["Remove the filter Agent: GPTBot"].endswith("/errors?status=404")
    assert chips["Remove the filter Status: 404"].endswith("/errors?agent=GPTBot")
    assert any(link.endswith("/errors?agent=GPTBot&status=404&path=%2Fgone") for link in page.links())


def test_file_has_the_rows_of_the_page(viewer: TestClient) -> None:
    address = f"/projects/{PROJECT}/errors"
    files = []
    for query in ("", "?by=agent", "?agent=Googlebot"):
        links = Html(viewer.get(address + query).text).links()
        files.append(viewer.get(next(link for link in links if ".csv" in link)))
    first, last, only = (f"{before(days)}T00:00:01+00:00" for days in (3, 1, 2))
    head = "path,requests,agents,statuses,firstSeen,lastSeen\r\n"
    assert files[0].text == f"{head}/gone,4,2,404,{first},{last}\r\n,1,0,404,{last},{last}\r\n"
    assert files[1].text.startswith("path,agent,traffic,status,requests,firstSeen,lastSeen\r\n/gone,GPTBot,ai,404,3,")
    assert files[2].text == f"{head}/gone,1,1,404,{only},{only}\r\n"
    assert all("x-as-of" in each.headers for each in files)


@pytest.mark.long
def test_invalid_status_is_named_and_left_out(viewer: TestClient) -> None:
    for status in ("200", "4x4", "٤٠٤", ATTACK):
        page = open_page(viewer, "/errors", 400, status=status)
        assert "is not the status of an error" in page.text
        assert rows_of(page) == [GONE, UNNAMED]


def test_period_that_ends_now_has_the_present_utc_day_in_a_zone_where_it_has_not_begun(site: Dashboard) -> None:
    """Open the page at 03:00 UTC, which is the evening before in Los Angeles."""
    now = datetime.combine(today() - timedelta(days=1), time(3), UTC)
    path = f"/projects/{PROJECT}/errors"
    query = b"period=today&zone=America/Los_Angeles&traffic=ai"
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}
    request = Request({**scope, "server": ("testserver", 80), "scheme": "http"})
    project = projects.find(site.engine, PROJECT)
    response = errors.error_list(ProjectVisit(request, site.client.app_state["running"], now, project=project))
    assert rows_of(Html(bytes(response.body).decode())) == [("/gone", "2", "1", "404")]


@pytest.mark.long
def test_no_error_is_not_a_zero(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:
        viewer = dashboard.visitor("viewer")
        assert "Errors are not set up" in open_page(viewer, "/errors").text
        dashboard.post_hits({"path": "/", "userAgent": FIREFOX, "timestamp": f"{today()}T00:00:00Z"})
        assert "No errors in this period" in open_page(viewer, "/errors").text
        assert "A server that does not send it has no errors here" in open_page(viewer, "/errors").text
        early = open_page(viewer, "/errors", **{"from": 9, "to": 9}).text
        assert "Errors were not counted in this period" in early


@pytest.mark.long
def test_errors_of_a_log_beside_those_of_a_server_have_a_warning(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as dashboard:
        viewer = dashboard.visitor("viewer")
        dashboard.post_hits(hit("/gone", GPTBOT, 0, 404), hit("/", GPTBOT, 0, 200))
        assert "counts twice" not in open_page(viewer, "/errors").text
        with closing(Site(dashboard.data, is_new=False)) as stored:
            stored.post(view(source="log", project_id=PROJECT))
        assert "an error that is in both counts twice" in open_page(viewer, "/errors").text
