"""The report of events over HTTP: by name and property, filtered, in pages, as JSON and CSV."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.reports.client import FIREFOX, GPTBOT, client_of
from tests.processes.running import Running

PERSON = {"userAgent": FIREFOX, "path": "/welcome"}
EVENTS: list[dict[str, Any]] = [
    {**PERSON, "name": "Signup", "props": {"plan": "pro"}, "address": "203.0.113.7"},
    {**PERSON, "name": "Signup", "props": {"plan": "pro"}, "address": "203.0.113.7"},
    {**PERSON, "name": "Signup", "props": {"seats": 5}},
    {"userAgent": GPTBOT, "path": "/a.pdf", "name": "File Download", "address": "203.0.113.8"},
    {"userAgent": "curl/8.0", "path": "/a.pdf", "name": "File Download"},
]


@pytest.fixture(scope="module")
def client(service: Running) -> Iterator[httpx.Client]:
    with client_of(service, "events-report") as client:
        sent = client.post("/events", json=[{**each, "timestamp": "2026-08-01T10:00:00Z"} for each in EVENTS])
        assert sent.json()["accepted"] == len(EVENTS)
        yield client


SIGNUP = ("Signup", None, "human", 3, 1)
DOWNLOAD = ("File Download", None, "ai", 1, 1)


def test_events_are_counted(client: httpx.Client) -> None:
    expected: dict[str, list[Any]] = {
        "": [SIGNUP, DOWNLOAD],
        "limit=1": [SIGNUP],
        "offset=1": [DOWNLOAD],
        "name=Signup&by=plan": [("Signup", "pro", "human", 2, 1), ("Signup", None, "human", 1, None)],
        "by=path&traffic=ai": [("File Download", "/a.pdf", "ai", 1, 1)],
        "by=agent&operator=OpenAI": [("File Download", "GPTBot", "ai", 1, 1)],
        "by=operator&traffic=ai": [("File Download", "OpenAI", "ai", 1, 1)],
        "by=purpose": [("Signup", None, "human", 3, 1), ("File Download", "training", "ai", 1, 1)],
        "by=traffic": [("Signup", "human", "human", 3, 1), ("File Download", "ai", "ai", 1, 1)],
        "operator=Anthropic": [],
        "traffic=bot": [("File Download", None, "bot", 1, None)],
        "path=/wel*&source=server": [SIGNUP],
        "source=log": [],
        "dateTo=2026-08-01": [],
        "name=Signup&by=channel": [("Signup", None, "human", 3, 1)],
        "name=Signup&by=plan&country=DE&utmSource=x": [],
    }
    names = ("name", "value", "traffic", "events", "visitors")
    for query, events in expected.items():
        answer = client.get(f"/events?{query}").json()
        assert [tuple(row[name] for name in names) for row in answer["events"]] == events, query
        assert answer["hasMore"] == ("limit" in query)


def test_tables_have_all_rows_and_a_value_only_with_by(client: httpx.Client) -> None:
    csv = {"Accept": "text/csv"}
    assert client.get("/events", params={"limit": 1}, headers=csv).text.splitlines() == [
        "name,traffic,events,visitors",
        "Signup,human,3,1",
        "File Download,ai,1,1",
    ]
    by_plan = client.get("/events", params={"by": "plan", "name": "Signup"}, headers=csv).text
    assert by_plan.splitlines() == ["name,value,traffic,events,visitors", "Signup,pro,human,2,1", "Signup,,human,1,"]


def test_wrong_parameter_is_refused(client: httpx.Client) -> None:
    for parameters in ({"by": ""}, {"by": "x" * 257}, {"name": "a\0"}, {"traffic": "x"}):
        assert client.get("/events", params=parameters).status_code == 400
