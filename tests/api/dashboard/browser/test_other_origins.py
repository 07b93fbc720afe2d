"""Forms that pages of other origins post to the dashboard, in the browser of a signed-in owner."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from api.dashboard.pages_table import PAGES
from api.dashboard.web.routes import Page
from tests.api.dashboard.browser.page_server import Site, page_server
from tests.api.dashboard.browser.sample import Sample
from tests.api.dashboard.browser.visiting import Visit, visiting
from tests.processes.running import PROJECT

FORMS = [
    page for page in PAGES if (page.method, page.path) in {("POST", "/projects"), ("POST", "/projects/{project}/keys")}
]
"""Two forms. `test_pages_table` has all forms, with the headers of other sites."""
SEND = """<script>
    addEventListener("DOMContentLoaded", () => {{
        const form = Object.assign(document.createElement("form"), {{method: "post", action: {action}}});
        document.body.append(form);
        form.submit();
    }});
</script>"""


@pytest.fixture(scope="module")
def attacker() -> Iterator[Site]:
    with page_server() as site:
        yield site


@pytest.fixture
def victim(browser: Browser, filled: Sample) -> Iterator[Visit]:
    """Yield a page with the cookie of a session as the service sets it."""
    with visiting(browser, filled.url, None) as visit:
        cookie = {"name": "readership_session", "value": filled.session, "url": filled.url, "httpOnly": True}
        visit.page.context.add_cookies([{**cookie, "sameSite": "Lax"}])  # type: ignore[typeddict-item]
        yield visit


@pytest.mark.parametrize("is_same_site", [True, False], ids=["another port", "another site"])
@pytest.mark.parametrize("page", FORMS, ids=lambda page: page.path)
def test_form_of_another_origin_is_refused(
    victim: Visit, attacker: Site, filled: Sample, page: Page, is_same_site: bool
) -> None:
    """Post to a path that exists. Another port of the same host is the same site: its forms have the session."""
    path = re.sub(r"\{(\w+)\}", lambda match: PROJECT if match[1] == "project" else "unknown", page.path)
    attacker.head = SEND.format(action=json.dumps(filled.url + path))
    origin = f"http://127.0.0.1:{urlsplit(attacker.origin).port}" if is_same_site else attacker.origin
    with victim.page.expect_response(filled.url + path) as answer:
        victim.page.goto(origin)
    request = answer.value.request
    assert (request.method, "readership_session" in request.all_headers().get("cookie", "")) == ("POST", is_same_site)
    assert answer.value.status == 403
    assert "the form was not sent by a page of this dashboard" in answer.value.text().lower()
