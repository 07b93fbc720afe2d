"""The hits of the tests of the overview, and the page as its tests read it."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from starlette.testclient import TestClient

from tests.api.dashboard.days import with_days
from tests.api.dashboard.html import Html
from tests.api.dashboard.site import FIREFOX
from tests.processes.running import PROJECT

IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.4 "
    "Mobile/15E148 Safari/604.1"
)
READERS = (FIREFOX, IPHONE, "GPTBot/1.3", "ClaudeBot/1.0", "PerplexityBot/1.0", "Googlebot/2.1")
HITS = 180
UNKNOWN = "\N{EN DASH}"


def hit(number: int) -> dict[str, Any]:
    """Return one of HITS hits of the last 45 days, of which each has 4, also around midnight."""
    now = datetime.now(UTC)
    day = (now - timedelta(days=number // 4)).replace(minute=number % 60, second=0, microsecond=0)
    values = {
        "path": f"/docs/{number % 7}" if number % 3 else f"/blog/{number % 5}",
        "userAgent": READERS[(number * number + number // 5) % 6],
        "timestamp": min(day.replace(hour=(0, 1, 12, 23)[number % 4]), now).isoformat(),
        "referrer": f"https://site{number % 4}.example/" if number % 2 else "",
    }
    if number % 5 == 0:
        values["path"] += f"?utm_source={('mail', 'chatgpt.com', '=1%2B1')[number % 3]}"
    return {name: value for name, value in values.items() if value}


def midnight(day: str, zone: str, days: int = 0) -> str:
    at = datetime.combine(date.fromisoformat(day) + timedelta(days), datetime.min.time(), ZoneInfo(zone))
    return quote(at.isoformat())


def numbers(cells: list[str]) -> list[int]:
    """Return the numbers in cells. An unknown number is 0 in the API."""
    return [0 if cell == UNKNOWN else int(cell.replace(",", "")) for cell in cells]


def page_of(client: TestClient, project: str = PROJECT, **parameters: str | int) -> Html:
    """Return the overview. A parameter `from` is written `from_`, and a number is the age of a day, in days."""
    query = urlencode({name.removesuffix("_"): value for name, value in with_days(parameters).items()})
    response = client.get(f"/projects/{project}?{query}")
    assert response.status_code == 200, response.text
    return Html(response.text)


def totals(page: Html) -> dict[str, str]:
    """Return the totals of a page by their names."""
    text = page.text
    names = rf"(by people|by AI|Other bots|Visits from AI) ([\d,.]+%?|{UNKNOWN}|Not set up)"
    found = re.findall(names, text.partition("Browsers CSV")[2].partition("Top pages")[0])
    short = {"by people": "People", "by AI": "AI"}
    return {short.get(name, name): number for name, number in reversed(found)}  # the chart has the same names
