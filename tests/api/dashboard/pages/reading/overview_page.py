"""The overview as its tests read it."""

import re
from urllib.parse import urlencode

from starlette.testclient import TestClient

from tests.api.dashboard.html import Html
from tests.running import PROJECT

UNKNOWN = "\N{EN DASH}"


def page_of(client: TestClient, project: str = PROJECT, **parameters: str) -> Html:
    """Return the overview. A parameter `from` is written `from_`."""
    query = urlencode({name.removesuffix("_"): value for name, value in parameters.items()})
    response = client.get(f"/projects/{project}?{query}")
    assert response.status_code == 200, response.text
    return Html(response.text)


def totals(page: Html) -> dict[str, str]:
    """Return the totals of a page by their names."""
    text = page.text
    names = rf"(People|AI|Other bots|Share of AI) ([\d,.]+%?|{UNKNOWN}|Not set up)"
    return dict(re.findall(names, text.partition("Browsers CSV")[2].partition("Top pages")[0]))
