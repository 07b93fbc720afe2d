"""Hits of 45 days by people, AI agents and other bots, and the queries of pages and of the API that mean the same."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from starlette.testclient import TestClient

from tests.api.dashboard.days import with_days
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import FIREFOX
from tests.processes.running import PROJECT

READERS = (FIREFOX, "GPTBot/1.3", "ClaudeBot/1.0", FIREFOX, "ChatGPT-User/1.0", "CCBot/2.0", "Googlebot/2.1")
REFERRERS = (
    "https://chatgpt.com/",
    "https://site.example/",
    "",
    "https://claude.ai/chat",
    "https://www.perplexity.ai/",
)
HITS = 360
OLD_PAGES = 30
"""Age of the hits, in days, from which on they are of other paths: the newer paths are new to AI in 30 days."""
ATTACK = '"><script>alert(1)</script>'
UNKNOWN = "\N{EN DASH}"


def hit(number: int) -> dict[str, Any]:
    """Return one of HITS hits of the last 45 days, of which each has 8, also around midnight."""
    age = number // 8
    now = datetime.now(UTC)
    day = (now - timedelta(days=age)).replace(hour=(0, 1, 12, 23)[number % 4], minute=number % 60, second=0)
    reader = READERS[(number * number + number // 3) % len(READERS)]
    values = {
        "path": f"/docs/{number % 5}" if number % 3 or age >= OLD_PAGES else f"/blog/{number % 4}",
        "userAgent": reader,
        "timestamp": min(day, now).isoformat(),
        "referrer": REFERRERS[number % len(REFERRERS)] if reader == FIREFOX else "",
        "format": ("text/html", "text/markdown", "")[number % 3],
        "status": (200, 200, 304, 0)[number % 4],
    }
    return {name: value for name, value in values.items() if value}


QUERIES: list[tuple[dict[str, str | int], dict[str, str | int]]] = [
    ({}, {"first": 29}),
    ({"period": "7d"}, {"first": 6}),
    ({"period": "today"}, {"first": 0}),
    ({"period": "yesterday"}, {"first": 1, "last": 1}),
    ({"period": "90d"}, {"first": 89}),
    ({"period": "all"}, {"first": "2000-01-01"}),
    ({"path": "/docs*"}, {"first": 29, "path": "/docs*"}),
    ({"source": "server"}, {"first": 29, "source": "server"}),
    ({"from": 20, "to": 11, "zone": "Asia/Kolkata"}, {"first": 20, "last": 11, "zone": "Asia/Kolkata"}),
    ({"from": 9, "to": 9, "zone": "America/New_York"}, {"first": 9, "last": 9, "zone": "America/New_York"}),
]
"""Parameters of a page, and the days, zone and filters that they mean. A number is the age of a day, in days."""
SOME_QUERIES = [QUERIES[place] for place in (0, 3, 6, 8)]
"""Enough to see that a page uses what it was asked for: `test_readers` and `test_view` have all parameters."""
WRONG: list[tuple[str, str]] = [
    ("period=decade", "There is no period “decade”"),
    ("from=tomorrow", "“tomorrow” is not a day"),
    ("zone=Mars/Base", "There is no time zone “Mars/Base”"),
    ("source=fax", "Source must be"),
    (f"zone={ATTACK}", f"There is no time zone “{ATTACK}”"),
    ("interval=second", "There is no interval “second”"),
]
"""Query with a wrong parameter, and the beginning of the sentence about it."""


def api_query(meaning: Mapping[str, str | int]) -> str:
    """Return the parameters of the API for what the parameters of a page mean."""
    expected = with_days(meaning)
    zone = expected.get("zone", "UTC")
    query = f"dateFrom={_midnight(expected['first'], zone)}"
    if "last" in expected:
        query += f"&dateTo={_midnight(expected['last'], zone, days=1)}"
    filters = {name: expected[name] for name in ("path", "source") if name in expected}
    return query + "".join(f"&{name}={quote(value)}" for name, value in filters.items())


def open_page(client: TestClient, path: str, status: int = 200, /, **parameters: str | int) -> Html:
    """Return a page of the project. A number is the age of a day, in days."""
    response = client.get(f"/projects/{PROJECT}{quote(path)}?{urlencode(with_days(parameters))}")
    assert response.status_code == status, response.text
    assert "<script>" not in response.text
    return Html(response.text)


def numbers(cells: list[str]) -> list[int]:
    """Return the numbers in cells. An empty cell is 0."""
    return [0 if cell == "" else int(cell.replace(",", "")) for cell in cells]


def _midnight(day: str, zone: str, days: int = 0) -> str:
    at = datetime.combine(date.fromisoformat(day) + timedelta(days), datetime.min.time(), ZoneInfo(zone))
    return quote(at.isoformat())
