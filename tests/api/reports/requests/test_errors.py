"""The list of errors that AI agents and bots got, from the posts of a server."""

import io
import re

import httpx
import pyarrow.parquet as pq
import pytest

from tests.api.reports.client import CSV, FIREFOX, GOOGLEBOT, GPTBOT, NDJSON, PARQUET, problem


def sent(path: str, agent: str, time: str, status: int, event_id: str | None = None) -> dict[str, object]:
    hit = {"path": path, "userAgent": agent, "timestamp": f"2026-09-{time}Z", "status": status}
    return hit if event_id is None else {**hit, "eventId": event_id}


POSTED = [
    sent("/old", GPTBOT, "02T10:00:00", 404, "one"),
    sent("/old/", GPTBOT, "03T10:00:00", 404),
    sent("/older", GPTBOT, "03T11:00:00", 404),
    sent("/older", GPTBOT, "03T12:00:00", 503),
    sent("/old", GOOGLEBOT, "04T10:00:00", 410),
    sent("/random", "", "04T11:00:00", 404),
    sent("/old", FIREFOX, "04T12:00:00", 404),
    sent("/new", GPTBOT, "04T13:00:00", 200),
]


@pytest.fixture
def errors(site: httpx.Client) -> httpx.Client:
    assert site.post("hits", json=POSTED).json()["accepted"] == len(POSTED)
    return site


def listed(client: httpx.Client, query: str = "") -> list[tuple[object, ...]]:
    """Return path, agent, status and requests of each row."""
    rows = client.get(f"errors?{query}").json()["errors"]
    return [(row["path"], row["agent"], row["status"], row["requests"]) for row in rows]


OLD, OLDER, DOWN = ("/old", "GPTBot", 404, 2), ("/older", "GPTBot", 404, 1), ("/older", "GPTBot", 503, 1)
GONE, RANDOM = ("/old", "Googlebot", 410, 1), (None, None, 404, 1)


def test_errors_are_listed_at_once_and_are_no_page_views(errors: httpx.Client) -> None:
    assert listed(errors) == [OLD, GONE, OLDER, DOWN, RANDOM]
    first = errors.get("errors").json()["errors"][0]
    times = {"firstSeen": "2026-09-02T10:00:00Z", "lastSeen": "2026-09-03T10:00:00Z"}
    assert first == {"path": "/old", "agent": "GPTBot", "traffic": "ai", "status": 404, "requests": 2, **times}
    totals = errors.get("breakdown?by=path").json()["totals"]
    assert totals == {"human": 1, "ai": 1, "bot": 0, "total": 2}


def test_repeated_event_id_of_an_error_is_a_duplicate(errors: httpx.Client) -> None:
    receipt = errors.post("hits", json=[POSTED[0], sent("/older", GPTBOT, "03T12:00:00", 404)]).json()
    assert (receipt["accepted"], receipt["duplicates"]) == (1, 1)
    assert listed(errors, "traffic=ai") == [OLD, ("/older", "GPTBot", 404, 2), DOWN]


def test_filters_and_days_choose_rows(errors: httpx.Client) -> None:
    expected = {
        "path=/old": [OLD, GONE],
        "path=/old*": [OLD, GONE, OLDER, DOWN],
        "traffic=ai": [OLD, OLDER, DOWN],
        "traffic=bot": [GONE, RANDOM],
        "agent=Googlebot": [GONE],
        "operator=OpenAI": [OLD, OLDER, DOWN],
        "operator=OpenAI&status=503": [DOWN],
        "operator=Anthropic": [],
        "operator=Google": [],
        "purpose=training&path=/old": [OLD],
        "operator=OpenAI&purpose=search": [],
        "operator=OpenAI&traffic=bot": [],
        "status=404": [OLD, OLDER, RANDOM],
        "status=404&agent=GPTBot&path=/older": [OLDER],
        "dateFrom=2026-09-03&dateTo=2026-09-04": [("/old", "GPTBot", 404, 1), OLDER, DOWN],
        "dateFrom=2026-09-04T00:00:00Z": [GONE, RANDOM],
        "dateTo=2026-09-02": [],
        "dateTo=2026-09-03": [("/old", "GPTBot", 404, 1)],
    }
    assert {query: listed(errors, query) for query in expected} == expected


def test_spoofed_request_is_none_of_the_operator_of_its_name(errors: httpx.Client) -> None:
    spoofed = {**sent("/old", GPTBOT, "05T10:00:00", 404), "address": "192.31.196.1"}
    assert errors.post("hits", json=spoofed).json()["accepted"] == 1
    assert (None, "GPTBot", 404, 1) in listed(errors, "agent=GPTBot")
    assert listed(errors, "operator=OpenAI") == [OLD, OLDER, DOWN]


def test_tables_have_all_rows(errors: httpx.Client) -> None:
    answer = errors.get("errors?agent=Googlebot", headers={"Accept": CSV})
    assert re.search(r"-errors-until-20\d\d-\d\d-\d\d\.csv", answer.headers["content-disposition"])
    assert answer.text == (
        "path,agent,traffic,status,requests,firstSeen,lastSeen\r\n"
        "/old,Googlebot,bot,410,1,2026-09-04T10:00:00+00:00,2026-09-04T10:00:00+00:00\r\n"
    )
    again = errors.get("errors?agent=Googlebot", headers={"Accept": CSV, "If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304
    assert len(errors.get("errors", headers={"Accept": NDJSON}).text.splitlines()) == 5
    parquet = errors.get("errors", headers={"Accept": PARQUET}).content
    assert pq.read_table(io.BytesIO(parquet))["requests"].to_pylist() == [2, 1, 1, 1, 1]


def test_invalid_parameter_is_named(site: httpx.Client) -> None:
    queries = "traffic=human status=200 status=x asOf=now dateTo=x purpose=x operator= source=log verification=verified"
    for query in ("dateFrom=2026-09-01T12:00:00Z", *queries.split()):
        (error,) = problem(site.get(f"errors?{query}"), 400)["errors"]
        assert error["parameter"] == query.partition("=")[0]
    assert site.get("errors").json() == {"errors": [], "hasMore": False}
    assert site.get("errors", headers={"Accept": CSV}).text.count("\n") == 1


def test_errors_by_path_have_one_row_for_each_path(errors: httpx.Client) -> None:
    page = errors.get("errors?by=path&limit=2").json()
    assert (page["errors"], page["hasMore"]) == ([], True)
    times = {"firstSeen": "2026-09-02T10:00:00Z", "lastSeen": "2026-09-04T10:00:00Z"}
    assert page["paths"][0] == {"path": "/old", "requests": 3, "agents": 2, "statuses": [404, 410], **times}
    table = errors.get("errors?by=path", headers={"Accept": CSV})
    assert [line.split(",")[:4] for line in table.text.splitlines()] == [
        ["path", "requests", "agents", "statuses"],
        ["/old", "3", "2", "404 410"],
        ["/older", "2", "1", "404 503"],
        ["", "1", "0", "404"],
    ]
    problem(errors.get("errors?by=agent"), 400)
