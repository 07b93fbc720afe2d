"""Projects of the tests of reports."""

from collections.abc import Iterator

import httpx
import pytest

from tests.api.reports.client import CLAUDE_USER, FIREFOX, GOOGLEBOT, GPTBOT, client_of
from tests.processes.running import Running

HITS = [
    {
        "path": "/docs/a",
        "userAgent": FIREFOX,
        "timestamp": "2025-03-29T22:30:00Z",
        "referrer": "https://news.example.com/",
    },
    {"path": "/docs/a", "userAgent": FIREFOX, "timestamp": "2025-03-29T23:30:00Z"},
    {"path": "/docs/b", "userAgent": GPTBOT, "timestamp": "2025-03-30T00:30:00Z", "format": "markdown", "status": 200},
    {"path": "/docs/b", "userAgent": CLAUDE_USER, "timestamp": "2025-03-30T22:30:00Z", "status": 304},
    {"path": "/about", "userAgent": GOOGLEBOT, "timestamp": "2025-03-30T12:00:00Z"},
    {
        "url": "https://example.com/about?utm_source=%3D1%2B1&utm_medium=email&utm_campaign=spring&utm_term=a&gclid=1",
        "userAgent": FIREFOX,
        "timestamp": "2025-04-01T00:00:00Z",
    },
    {"path": "/about/us", "userAgent": GPTBOT, "timestamp": "2025-04-01T05:00:00Z", "status": 200},
]
"""Three views by people, three by AI agents and one by another bot.

In Berlin the clock changes on 2025-03-30, at 01:00 UTC from +01:00 to +02:00.
"""


@pytest.fixture(scope="module")
def hits(service: Running) -> Iterator[httpx.Client]:
    """Return a client of the project with HITS; tests only read it."""
    with client_of(service, "reports-hits") as client:
        if not client.get("views").json()["views"]:
            assert client.post("hits", json=HITS).json()["accepted"] == len(HITS)
        yield client


@pytest.fixture(scope="module")
def beacon(service: Running) -> Iterator[httpx.Client]:
    """Return a client of a project with one view, by a person and from a page."""
    with client_of(service, "reports-beacon") as client:
        if not client.get("views").json()["views"]:
            page = {"Origin": "https://example.com", "User-Agent": FIREFOX}
            hit = {"url": "https://example.com/a"}
            assert httpx.post(f"{client.base_url}hits", json=hit, headers=page).status_code == 202
        yield client
