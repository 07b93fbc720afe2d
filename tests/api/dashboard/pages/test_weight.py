"""The bytes on the wire of the pages of a project with every known agent, and many paths and referrers."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from api.dashboard import pages_table
from api.dashboard.pages.reading.ai.readers import OPERATORS
from api.dashboard.web.routes import Access
from ingest.classification.agents import BY_NAME
from tests.api.dashboard.days import with_days
from tests.api.dashboard.html import Html
from tests.api.dashboard.pages.reading.ai.ai_traffic import FIREFOX, open_page
from tests.api.dashboard.site import Dashboard, opened
from tests.processes.running import PROJECT

BYTES_MAX = 15_000
"""Maximum size of a page, also of one with a chart of 744 hours that are compared."""
ZONE = "America/Argentina/ComodRivadavia"
"""The longest name of a time zone, which each link of a page can have."""
HITS = 1_200
PATH = "/documentation/guides/how-to-install-the-product-on-your-own-server/part-{}"
PAGES = ("", "/ai", "/ai/agents/GPTBot", "/pages", f"/page?path={PATH.format(0)}", "/errors", "/setup")
SHARED = (Access.SHARED, Access.SHARED_ALL)
QUERIES: tuple[dict[str, str | int], ...] = (
    {"period": "30d"},
    {"from": 31, "to": 1, "interval": "hour", "compare": "previous", "zone": ZONE},
    {"period": "12mo", "compare": "previous", "zone": ZONE},
)
"""Parameters of a page. A number is the age of a day, in days."""
KNOWN = [agent for agent in BY_NAME.values() if agent.until is None]


def hit(number: int) -> dict[str, Any]:
    """Return a read of one of 240 pages by each known agent in turn, or by a person from one of 240 sites."""
    is_person = number % 2
    values = {
        "path": PATH.format(number % 240),
        "userAgent": FIREFOX if is_person else f"{KNOWN[number // 2 % len(KNOWN)].tokens[0]}/1.0",
        "timestamp": (datetime.now(UTC) - timedelta(hours=1 + number)).isoformat(),
        "referrer": f"https://a-site-with-a-long-name-{number % 240}.example/" if is_person else "",
        "status": 200 if number % 7 else 404,
    }
    return {name: value for name, value in values.items() if value}


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with opened(tmp_path_factory.mktemp("weight") / "data") as dashboard:
        for first in range(0, HITS, 100):
            dashboard.post_hits(*map(hit, range(first, first + 100)))
        yield dashboard


@pytest.mark.night
@pytest.mark.parametrize("parameters", QUERIES, ids=("days", "hours", "year"))
@pytest.mark.parametrize("path", PAGES)
def test_page_is_light_on_the_wire(viewer: TestClient, path: str, parameters: dict[str, str | int]) -> None:
    query = urlencode(with_days(parameters))
    page = viewer.get(f"/projects/{PROJECT}{path}{'&' if '?' in path else '?'}{query}")
    assert (page.status_code, page.headers["content-encoding"]) == (200, "gzip")
    assert int(page.headers["content-length"]) < BYTES_MAX


@pytest.mark.long
def test_each_page_is_light_on_the_wire(dashboard: Dashboard) -> None:
    owner = dashboard.visitor("owner")
    parameters = {"{project}": PROJECT, "{agent:path}": "GPTBot", "/page": f"/page?path={PATH.format(0)}"}
    paths = {page.path for page in pages_table.PAGES if page.method == "GET" and page.access not in SHARED}
    for path in sorted(path for path in paths if not re.search(r"\{(token|job|turn)\}|\.(csv|parquet)$", path)):
        address = re.sub(r"\{[^}]+\}|/page$", lambda match: parameters[match[0]], path)
        response = owner.get(address, follow_redirects=False)
        assert response.status_code in (200, 303), address
        assert int(response.headers.get("content-length", 0)) < BYTES_MAX, address


def operators_of(page: Html) -> list[str]:
    """Return the links of the rows of operators, which filter by one of them."""
    return [link for link in page.links() if re.search(r"[?&]operator=", link)]


@pytest.mark.long
def test_pages_of_the_table_have_each_operator_once(viewer: TestClient) -> None:
    count = len({agent.operator for agent in KNOWN})
    numbers = range(1, -(-count // OPERATORS) + 1)
    pages = [open_page(viewer, "/ai", period="90d", page=str(number)) for number in numbers]
    assert len({link for page in pages for link in operators_of(page)}) == count > 2 * OPERATORS
    for number, page in zip(numbers, pages, strict=True):
        first, last = (number - 1) * OPERATORS + 1, min(number * OPERATORS, count)
        assert len(operators_of(page)) == last - first + 1
        assert f"{first}\N{EN DASH}{last} of {count}" in page.text
        following = [attributes for tag, attributes in page.tags if tag == "a" and attributes.get("rel") == "next"]
        assert [f"page={number + 1}" in (attributes["href"] or "") for attributes in following] == [True] * (
            last < count
        )


@pytest.mark.long
def test_page_after_the_last_one_has_a_message_and_a_link_back(viewer: TestClient) -> None:
    page = open_page(viewer, "/ai", period="90d", page="9")
    assert (operators_of(page), "There are no more operators." in page.text) == ([], True)
    (back,) = [attributes["href"] for tag, attributes in page.tags if tag == "a" and attributes.get("rel") == "prev"]
    assert "page=8" in (back or "")
    assert not re.search(r"of \d+ Next|Previous of", page.text)
