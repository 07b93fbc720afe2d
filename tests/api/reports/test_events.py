"""The report of events over HTTP: by name and property, filtered, in pages, as JSON and CSV."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.processes.running import Running, new_key

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.3; +https://openai.com/gptbot)"
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
    headers = {"Authorization": f"Bearer {new_key(service.data, 'events-report')}"}
    at = "2026-08-01T10:00:00Z"
    with httpx.Client(base_url=f"{service.url}/v1/analytics/events-report", headers=headers) as client:
        sent = client.post("/events", json=[{**each, "timestamp": at} for each in EVENTS])
        assert sent.json()["accepted"] == len(EVENTS)
        yield client


SIGNUP = ("Signup", None, "human", 3, 1)
DOWNLOAD = ("File Download", None, "ai", 1, 1)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, [SIGNUP, DOWNLOAD]),
        ({"limit": "1"}, [SIGNUP]),
        ({"offset": "1"}, [DOWNLOAD]),
        ({"name": "Signup", "by": "plan"}, [("Signup", "pro", "human", 2, 1), ("Signup", None, "human", 1, None)]),
        ({"by": "path", "traffic": "ai"}, [("File Download", "/a.pdf", "ai", 1, 1)]),
        ({"by": "agent", "operator": "OpenAI"}, [("File Download", "GPTBot", "ai", 1, 1)]),
        ({"operator": "Anthropic"}, []),
        ({"traffic": "bot"}, [("File Download", None, "bot", 1, None)]),
        ({"path": "/wel*", "source": "server"}, [SIGNUP]),
        ({"source": "log"}, []),
        ({"dateTo": "2026-08-01"}, []),
    ],
)
def test_events_are_counted(client: httpx.Client, parameters: dict[str, str], expected: list[Any]) -> None:
    answer = client.get("/events", params=parameters).json()
    assert [
        tuple(row[name] for name in ("name", "value", "traffic", "events", "visitors")) for row in answer["events"]
    ] == (expected)
    assert answer["hasMore"] == ("limit" in parameters)


def test_tables_have_all_rows_and_a_value_only_with_by(client: httpx.Client) -> None:
    csv = {"Accept": "text/csv"}
    assert client.get("/events", params={"limit": 1}, headers=csv).text.splitlines() == [
        "name,traffic,events,visitors",
        "Signup,human,3,1",
        "File Download,ai,1,1",
    ]
    by_plan = client.get("/events", params={"by": "plan", "name": "Signup"}, headers=csv).text
    assert by_plan.splitlines() == [
        "name,value,traffic,events,visitors",
        "Signup,pro,human,2,1",
        "Signup,,human,1,",
    ]


@pytest.mark.parametrize("parameters", [{"by": ""}, {"by": "x" * 257}, {"name": "a\0"}, {"channel": "Search"}])
def test_wrong_parameter_is_refused(client: httpx.Client, parameters: dict[str, str]) -> None:
    assert client.get("/events", params=parameters).status_code == 400
