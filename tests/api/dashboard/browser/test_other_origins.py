"""Forms that pages of other origins post to the dashboard, in the browser of a signed-in owner."""

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.api.dashboard.browser.page_server import Site, page_server
from tests.api.dashboard.browser.sample import Sample
from tests.api.dashboard.browser.visiting import Visit, visiting
from tests.processes.running import PROJECT

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
def test_form_of_another_origin_is_refused(victim: Visit, attacker: Site, filled: Sample, is_same_site: bool) -> None:
    """Post one form; `test_pages_table` has all. Another port of the same host is the same site, with the session."""
    path = f"/projects/{PROJECT}/keys"
    attacker.head = SEND.format(action=json.dumps(filled.url + path))
    origin = f"http://127.0.0.1:{urlsplit(attacker.origin).port}" if is_same_site else attacker.origin
    with victim.page.expect_response(filled.url + path) as answer:
        victim.page.goto(origin)
    request = answer.value.request
    assert (request.method, "readership_session" in request.all_headers().get("cookie", "")) == ("POST", is_same_site)
    assert answer.value.status == 403
    assert "the form was not sent by a page of this dashboard" in answer.value.text().lower()
