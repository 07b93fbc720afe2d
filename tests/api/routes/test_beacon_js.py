"""beacon.js in Chromium: a site on one origin, and a server that receives its hits on another."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from unittest.mock import ANY

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from api.routes.script import SCRIPTS
from ingest.channels.channels import CLICKS as CLICK_IDS
from ingest.hits.parameters import parameters
from tests.processes.chromium import NOT_AUTOMATED, launch
from tests.processes.running import Running
from tests.processes.waiting import until

HIT_TIMEOUT_S = 60

FAKE_PRERENDERING = "Object.defineProperty(document, 'prerendering', {value: true, configurable: true})"
ACTIVATE = """() => {
    Object.defineProperty(document, 'prerendering', {value: false});
    document.dispatchEvent(new Event('prerenderingchange'));
}"""
HIDE = "Object.defineProperty(document, 'hidden', {value: true, configurable: true})"
SHOW = "delete document.hidden"
CHANGED = "document.dispatchEvent(new Event('visibilitychange', {bubbles: true}))"
RECORD_FETCH = """
    const fetched = window.fetched = [];
    const original = window.fetch;
    window.fetch = (url, options) => {
        fetched.push({keepalive: options.keepalive, credentials: options.credentials});
        return original(url, options);
    };
"""


@dataclass(frozen=True, slots=True)
class Hit:
    path: str
    content_type: str
    body: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.body["url"])


class Service:
    """A server of beacon.js below any path, with a queue of the received hits, and one of the times on pages.

    Two concurrent hits may arrive in either order: wait for one before causing the next.
    """

    def __init__(self, origin: str, hits: Queue[Hit], times: Queue[Hit]) -> None:
        self.origin = origin
        self._hits, self._times = hits, times

    def next_hit(self) -> Hit:
        """Return the next hit.

        Raises:
            queue.Empty: no hit arrived in time.
        """
        return self._hits.get(timeout=HIT_TIMEOUT_S)

    def next_time(self) -> tuple[str, int]:
        """Return the URL of the next page that was hidden, and for how many seconds it was visible."""
        sent = self._times.get(timeout=HIT_TIMEOUT_S)
        assert (sent.path, sent.body["interactive"]) == ("/v1/analytics/docs/events", False)
        return sent.url, sent.body["props"]["ms"] // 1_000


class Site:
    """A server with the same page on every path. Tests set the head of the page."""

    def __init__(self, origin: str, receiver: Service) -> None:
        self.origin = origin
        self.receiver = receiver
        self.head, self.body = self.script_tag('data-project="docs" data-local'), ""

    def script_tag(self, attributes: str, mount_path: str = "") -> str:
        return f'<script defer src="{self.receiver.origin}{mount_path}/beacon.js" {attributes}></script>'

    def html(self) -> str:
        head = f"<head><title>A page</title>{self.head}</head>"
        return f'<!doctype html><html lang="en">{head}<body>{self.body}</body></html>'


def _respond(request: BaseHTTPRequestHandler, content_type: str, body: bytes) -> None:
    request.send_response(200)
    request.send_header("Content-Type", content_type)
    request.send_header("Content-Length", str(len(body)))
    request.send_header("Access-Control-Allow-Origin", "*")
    request.end_headers()
    request.wfile.write(body)


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve with a handler, and yield the origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def receiver() -> Iterator[Service]:
    hits, times = Queue[Hit](), Queue[Hit]()

    class Handler(_Quiet):
        def do_GET(self) -> None:
            _respond(self, "text/javascript", SCRIPTS[self.path.rpartition("/")[2]])

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            queue = times if body.get("name") == "engagement" else hits
            queue.put(Hit(self.path, self.headers["Content-Type"], body))
            _respond(self, "application/json", b"{}")

    with _serving(Handler) as origin:
        yield Service(origin, hits, times)


@pytest.fixture
def site(receiver: Service) -> Iterator[Site]:
    class Handler(_Quiet):
        def do_GET(self) -> None:
            _respond(self, "text/html; charset=utf-8", site.html().encode())

    with _serving(Handler) as origin:
        site = Site(origin, receiver)
        yield site


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with launch(playwright, NOT_AUTOMATED) as launched:
        yield launched


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture
def push(page: Page) -> Callable[[str], None]:
    def push(url: str) -> None:
        page.evaluate("url => history.pushState({}, '', url)", url)

    return push


def assert_nothing_else_is_sent(page: Page, receiver: Service) -> None:
    """Send a hit without the beacon, and check that it is the next one."""
    url = "https://sentinel.test/"
    send = "([to, url]) => navigator.sendBeacon(to, JSON.stringify({url}))"
    page.evaluate(send, [f"{receiver.origin}/v1/analytics/docs/hits", url])
    assert receiver.next_hit().url == url


def test_load_sends_one_hit_below_the_mount_path_of_the_script(page: Page, site: Site, receiver: Service) -> None:
    page.goto(f"{site.origin}/guide?utm_source=news#install", referer="https://search.example/results")
    hit = receiver.next_hit()
    assert hit.path == "/v1/analytics/docs/hits"
    assert hit.content_type.startswith("text/plain")
    assert hit.body.keys() == {"url", "referrer", "eventId", "timeZone"}
    assert hit.url == f"{site.origin}/guide?utm_source=news"
    assert hit.body["referrer"].startswith("https://search.example/")
    assert_nothing_else_is_sent(page, receiver)
    assert page.context.cookies() == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    site.head = site.script_tag('data-project="my-docs" data-local', mount_path="/stats")
    page.goto(site.origin)
    hit = receiver.next_hit()
    assert (hit.path, hit.body.keys()) == ("/stats/v1/analytics/my-docs/hits", {"url", "eventId", "timeZone"})


def test_push_state_back_and_replace_state_send_hits_referred_by_the_previous_page(
    page: Page, site: Site, receiver: Service, push: Callable[[str], None]
) -> None:
    page.goto(f"{site.origin}/one", referer="https://search.example/")
    hits = [receiver.next_hit()]
    for change in (
        "history.pushState({}, '', '/two?tab=1#top')",
        "history.pushState({}, '', '/two?tab=2')",
        "history.back()",
        "history.replaceState({}, '', '/three')",
    ):
        page.evaluate(change)
        hits.append(receiver.next_hit())
    urls = [f"{site.origin}{path}" for path in ("/one", "/two?tab=1", "/two?tab=2", "/two?tab=1", "/three")]
    assert [hit.url for hit in hits] == urls
    assert [hit.body["referrer"] for hit in hits[1:]] == urls[:-1]
    assert len({hit.body["eventId"] for hit in hits}) == 5


def test_change_within_the_page_sends_nothing(page: Page, site: Site, receiver: Service) -> None:
    for script in (
        "location.hash = 'chapter'",
        "history.pushState({}, '', '#chapter')",
        "history.pushState({}, '', location.href)",
        "history.replaceState({scroll: 1}, '')",
        "history.replaceState({}, '', '/one?filter=open')",
        "new Promise(back => { location.hash = 'a'; onpopstate = back; history.back() }).then(() => 0)",
    ):
        page.goto(f"{site.origin}/one")
        assert receiver.next_hit().url == f"{site.origin}/one"
        page.evaluate(script)
        page.evaluate("history.pushState({}, '', '/sentinel')")
        assert receiver.next_hit().url == f"{site.origin}/sentinel", script


def test_canonical_link_of_the_site_is_sent_with_utm_parameters(page: Page, site: Site, receiver: Service) -> None:
    head = site.head
    site.head = f'{head}<link rel="canonical" href="/guide/#top">'
    page.goto(f"{site.origin}/old-guide?session=7&utm_source=news")
    assert receiver.next_hit().url == f"{site.origin}/guide/?utm_source=news"
    page.goto(f"{site.origin}/old-guide?session=7&gad_source=5&gclid=Cj0KCQ&ref=news")
    assert receiver.next_hit().url == f"{site.origin}/guide/?gad_source=1&gclid=1&ref=news"
    page.goto(f"{site.origin}/old-guide?hashid=7&pushid=7&igsh=Mz&igshid=Nz&source=ig&my_source=no")
    assert receiver.next_hit().url == f"{site.origin}/guide/?igsh=1&igshid=1&source=ig"
    site.head = f'{head}<link rel="canonical" href="https://original.example/guide">'
    page.goto(f"{site.origin}/copy")
    assert receiver.next_hit().url == f"{site.origin}/copy"


@pytest.mark.parametrize("head", ["", '<link rel="canonical" href="/guide?id=7">', '<link rel="canonical">'])
def test_campaign_and_names_of_clicks_are_sent_with_and_without_a_canonical_link(
    page: Page, site: Site, receiver: Service, head: str
) -> None:
    site.head += head
    click = "Cj0KCQ-secret"
    queries = {
        "ref=producthunt&source=rss": {"utm_source": "producthunt"},
        "source=rss&referral=x": {"utm_source": "rss"},
        "utm_medium=a&utm_campaign=b&utm_term=c&utm_content=d%26e": {
            "utm_medium": "a", "utm_campaign": "b", "utm_term": "c", "utm_content": "d&e",
        },
        **{f"{name}={click}&utm_medium=x": {"click": name, "utm_medium": "x"} for name in CLICK_IDS},
    }  # fmt: skip
    for query, columns in queries.items():
        page.goto(f"{site.origin}/guide?id=7&{query}")
        url = receiver.next_hit().url
        assert parameters(url) == columns
        assert "id=7" in url
        assert click not in url


def test_canonical_link_is_used_for_the_first_page_only(
    page: Page, site: Site, receiver: Service, push: Callable[[str], None]
) -> None:
    site.head += '<link rel="canonical" href="/guide">'
    page.goto(f"{site.origin}/old-guide")
    assert receiver.next_hit().url == f"{site.origin}/guide"
    push("/two")
    second = receiver.next_hit()
    assert (second.url, second.body["referrer"]) == (f"{site.origin}/two", f"{site.origin}/guide")
    page.evaluate("history.back()")
    assert receiver.next_hit().url == f"{site.origin}/guide"


def test_hit_is_sent_by_a_fetch_with_keepalive(page: Page, site: Site, receiver: Service) -> None:
    page.add_init_script(RECORD_FETCH)
    page.goto(f"{site.origin}/one")
    assert receiver.next_hit().url == f"{site.origin}/one"
    assert page.evaluate("fetched") == [{"keepalive": True, "credentials": "omit"}]


def test_time_for_which_a_page_was_visible_is_sent_when_it_is_hidden_and_when_it_is_left(
    page: Page, site: Site, receiver: Service, push: Callable[[str], None]
) -> None:
    page.clock.install()
    page.goto(f"{site.origin}/one")
    page.clock.fast_forward(40_000)
    push("/two")  # sends no time: the next view shows how long the visit was
    page.clock.fast_forward(70_000)
    page.evaluate(f"{HIDE}; {CHANGED}")
    assert receiver.next_time() == (f"{site.origin}/two", 70)
    page.clock.fast_forward(600_000)
    page.evaluate(f"{SHOW}; {CHANGED}")
    page.clock.fast_forward(15_000)
    page.add_init_script(f"{HIDE}")
    page.goto(f"{site.origin}/background")
    assert receiver.next_time() == (f"{site.origin}/two", 85)
    page.clock.fast_forward(600_000)
    page.evaluate(CHANGED)  # was hidden, and still is
    page.evaluate(f"{SHOW}; {CHANGED}")
    page.clock.fast_forward(5_000)
    page.goto("about:blank")
    assert receiver.next_time() == (f"{site.origin}/background", 5)


def test_time_on_a_page_is_sent_once_when_it_is_left_also_by_a_browser_that_does_not_hide_it(
    page: Page, site: Site, receiver: Service
) -> None:
    page.clock.install()
    page.goto(f"{site.origin}/one")
    page.clock.fast_forward(20_000)
    page.evaluate("dispatchEvent(new Event('pagehide'))")  # as Safari before 14.1 does, without visibilitychange
    assert receiver.next_time() == (f"{site.origin}/one", 20)
    page.evaluate(f"{HIDE}; {CHANGED}; {SHOW}; {CHANGED}")  # as other browsers do then: the time is not sent again
    page.clock.fast_forward(3_000)
    page.goto("about:blank")
    assert receiver.next_time() == (f"{site.origin}/one", 23)


@pytest.mark.long
def test_reason_of_a_failed_beacon_is_in_the_console_and_in_the_log(page: Page, site: Site, service: Running) -> None:
    assert service.run("project", "create", "script-shop", "--origin", "https://shop.example").returncode == 0
    for project, status, reason in (
        ("script-shop", 403, "project 'script-shop' does not accept beacons from the origin"),
        ("script-nobody", 404, "'script-nobody'"),
    ):
        site.head = f'<script defer src="{service.url}/beacon.js" data-project="{project}" data-local></script>'
        with page.expect_console_message(lambda message: message.text.startswith("Readership:")) as warning:
            page.goto(site.origin)
        assert warning.value.text.startswith(f"Readership: {status} {{")
        assert reason in warning.value.text
        until(partial(_is_logged, service, status, reason))


def _is_logged(service: Running, status: int, reason: str) -> bool:
    """Return whether the log has the response, which is logged after it was sent."""
    return any(f'"status":{status},' in line and reason in line for line in service.log.read_text().splitlines())


def test_unreachable_service_is_reported_in_the_console(page: Page, site: Site) -> None:
    page.route("**/hits", lambda route: route.abort())
    with page.expect_console_message(lambda message: message.text.startswith("Readership: TypeError")):
        page.goto(site.origin)


@pytest.mark.long
def test_automated_browser_sends_nothing(playwright: Playwright, site: Site, receiver: Service) -> None:
    with launch(playwright) as automated:
        page = automated.new_page()
        page.goto(site.origin)
        page.evaluate("history.pushState({}, '', '/two')")
        assert_nothing_else_is_sent(page, receiver)


def test_prerendered_page_is_counted_when_it_is_shown(page: Page, site: Site, receiver: Service) -> None:
    page.add_init_script(FAKE_PRERENDERING)
    page.goto(f"{site.origin}/next")
    assert_nothing_else_is_sent(page, receiver)
    page.evaluate(ACTIVATE)
    assert receiver.next_hit().url == f"{site.origin}/next"


def test_return_from_the_back_forward_cache_sends_a_hit(page: Page, site: Site, receiver: Service) -> None:
    page.goto(f"{site.origin}/one", referer="https://search.example/")
    first = receiver.next_hit()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    again = receiver.next_hit()
    assert (again.url, again.body["referrer"]) == (first.url, first.body["referrer"])
    assert again.body["eventId"] != first.body["eventId"]


def test_script_without_a_project_or_on_a_local_page_only_warns(page: Page, site: Site, receiver: Service) -> None:
    for attributes, missing in (("data-local", "data-project"), ('data-project="docs"', "data-local")):
        site.head = site.script_tag(attributes)
        with page.expect_console_message(lambda message, missing=missing: missing in message.text) as warning:
            page.goto(site.origin)
        assert warning.value.type == "warning"
        assert_nothing_else_is_sent(page, receiver)


def test_file_sends_nothing_without_data_local(page: Page, site: Site, receiver: Service, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(site.script_tag('data-project="docs"'))
    with page.expect_console_message(lambda message: "data-local" in message.text):
        page.goto(file.as_uri())
    assert_nothing_else_is_sent(page, receiver)
    file.write_text(site.script_tag('data-project="docs" data-local'))
    page.reload()
    assert receiver.next_hit().url == file.as_uri()


def test_page_on_plain_http_is_counted(page: Page, site: Site, receiver: Service) -> None:
    site.head = site.script_tag('data-project="docs"')
    origin = site.origin.replace("127.0.0.1", "docs.test")
    page.goto(f"{origin}/one")
    assert page.evaluate("crypto.randomUUID === undefined")
    assert receiver.next_hit().url == f"{origin}/one"


def test_script_that_is_included_twice_counts_once(page: Page, site: Site, receiver: Service) -> None:
    site.head += site.head
    page.goto(f"{site.origin}/one")
    assert receiver.next_hit().url == f"{site.origin}/one"
    assert_nothing_else_is_sent(page, receiver)


def test_page_may_count_a_view_by_hand(page: Page, site: Site, receiver: Service) -> None:
    page.goto(f"{site.origin}/one")
    assert receiver.next_hit().url == f"{site.origin}/one"
    page.evaluate("readership.view('/step-2#form')")
    by_hand = receiver.next_hit()
    page.evaluate("readership.view('http://[')")
    page.evaluate("readership.view()")
    after = receiver.next_hit()
    assert (by_hand.url, by_hand.body["referrer"]) == (f"{site.origin}/step-2", f"{site.origin}/one")
    assert (after.url, after.body["referrer"]) == (f"{site.origin}/one", f"{site.origin}/step-2")


def test_error_of_a_hit_does_not_reach_the_page(page: Page, site: Site) -> None:
    page.add_init_script("window.fetch = () => { throw new TypeError('refused') }")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(error.message))
    page.goto(site.origin)
    assert page.evaluate("history.pushState({}, '', '/two'), location.pathname") == "/two"
    assert errors == []


def test_script_is_below_1500_bytes_with_gzip() -> None:
    assert len(gzip.compress(SCRIPTS["beacon.js"], compresslevel=9, mtime=0)) < 1_500


STUB = """<script>
    window.NAME = window.NAME || function () { (window.NAME.q = window.NAME.q || []).push(arguments) };
    NAME('Signup', {props: {plan: 'pro', seats: 5}, callback: () => window.called = true});
</script>"""


def _event(receiver: Service, *, has_view: bool = False) -> tuple[str, str, Any]:
    """Return the name, the path of the page and the properties of the next hit, which must be an event.

    With `has_view`, the event and a view are posted at once, and arrive in any order.
    """
    hit, *view = sorted((receiver.next_hit() for _ in range(1 + has_view)), key=lambda each: each.path)
    assert all(each.path.endswith("/hits") for each in view)
    assert hit.path.endswith("/v1/analytics/docs/events"), hit
    assert hit.body["eventId"]
    return hit.body["name"], hit.url.partition("/")[2].partition("/")[2].partition("/")[2], hit.body.get("props")


@pytest.mark.parametrize("name", ["readership", "plausible"])
def test_calls_before_and_after_the_script_has_loaded_send_events(
    page: Page, site: Site, receiver: Service, name: str, push: Callable[[str], None]
) -> None:
    site.head = STUB.replace("NAME", name) + site.head
    page.goto(f"{site.origin}/pricing?tab=1")
    assert _event(receiver, has_view=True) == ("Signup", "pricing?tab=1", {"plan": "pro", "seats": 5})
    assert page.evaluate("called")
    push("/welcome")
    assert receiver.next_hit().path.endswith("/hits")
    page.evaluate(f"{name}('Upgrade')")
    assert _event(receiver) == ("Upgrade", "welcome", None)
    page.evaluate(f"{name}('Idle', {{interactive: false}})")
    assert receiver.next_hit().body["interactive"] is False


def test_function_of_plausible_stays_and_its_queue_is_passed_on(page: Page, site: Site, receiver: Service) -> None:
    site.head = STUB.replace("NAME", "plausible") + site.head
    page.goto(site.origin)
    assert _event(receiver, has_view=True)[0] == "Signup"
    page.evaluate("plausible('Later')")
    assert _event(receiver)[0] == "Later"
    assert page.evaluate("plausible.q.map(each => each[0])") == ["Signup", "Later"]
    site.head = "<script>window.plausible = name => { window.sent = name }</script>" + site.script_tag(
        'data-project="docs" data-local'
    )
    page.goto(f"{site.origin}/two")
    assert receiver.next_hit().url == f"{site.origin}/two"
    page.evaluate("plausible('Theirs')")
    assert page.evaluate("sent") == "Theirs"
    assert_nothing_else_is_sent(page, receiver)


def test_prerendered_page_sends_its_events_when_shown_and_calls_back(page: Page, site: Site, receiver: Service) -> None:
    page.add_init_script(FAKE_PRERENDERING)
    page.goto(f"{site.origin}/next")
    page.evaluate("readership('Signup', {callback: () => window.called = true})")
    assert page.evaluate("called")
    page.evaluate(ACTIVATE)
    assert _event(receiver, has_view=True) == ("Signup", "next", None)


LINKS = """<a id=out href="http://other.test:1/shop?token=1#top"><b>Shop</b></a> <a id=in href="/guide">Guide</a>
    <a id=file href="/files/Manual.PDF?v=2">Manual</a> <a id=mail href="mailto:a@example.com">Mail</a>
    <a id=there href="http://other.test:1/set.zip">Set</a>"""
OUT = ("Outbound Link: Click", "http://other.test:1/shop")
FILE, THERE = ("File Download", "/files/Manual.PDF"), "http://other.test:1/set.zip"
CLICKS: dict[str, dict[str, tuple[str, str]]] = {
    "": {},
    "outbound": {"out": OUT, "there": ("Outbound Link: Click", THERE)},
    "downloads": {"file": FILE, "there": ("File Download", THERE)},
    "outbound downloads": {"out": OUT, "file": FILE, "there": ("File Download", THERE)},
}
"""Names and addresses of the events by links, for each option of the script."""


@pytest.mark.long
def test_clicks_on_links_are_sent_if_the_script_tag_names_them(page: Page, site: Site, receiver: Service) -> None:
    site.body = LINKS
    for option, expected in CLICKS.items():
        site.head = site.script_tag(f'data-project="docs" data-local data-events="{option}"')
        with page.expect_response("**/events.js") if option else nullcontext():
            page.goto(f"{site.origin}/one")
        receiver.next_hit()
        page.wait_for_load_state("networkidle")
        page.evaluate("addEventListener('click', click => click.preventDefault())")
        for id in ("out", "in", "file", "mail", "there"):
            page.click(f"#{id}")
            if id in expected:
                name, url = expected[id]
                assert _event(receiver) == (name, "one", {"url": url})
        page.click("#out", button="right")
        assert_nothing_else_is_sent(page, receiver)


@pytest.mark.long
def test_events_are_stored_although_the_click_leaves_the_page(page: Page, site: Site, service: Running) -> None:
    assert service.run("project", "create", "script-events", "--origin", site.origin).returncode == 0
    options = 'data-project="script-events" data-local data-events="outbound downloads 404"'
    site.head = f'<script defer src="{service.url}/beacon.js" {options}></script>'
    site.body = f'<a id=out href="{site.origin.replace("127.0.0.1", "other.test")}/shop?q=1">Shop</a>'
    with page.expect_response("**/events", timeout=HIT_TIMEOUT_S * 1_000):
        page.goto(f"{site.origin}/gone")
    page.evaluate("readership('Signup', {props: {plan: 'pro'}})")
    page.click("#out")
    page.wait_for_url("**/shop?q=1")

    columns = "name, path, props, interactive, source, visitor IS NOT NULL AS known"
    sql = f"SELECT {columns} FROM events WHERE project_id = 'script-events' ORDER BY name"
    rows: list[dict[str, Any]] = []

    def are_stored() -> bool:
        rows[:] = json.loads(service.run("sql", "--format", "json", sql).stdout)
        return len(rows) == 4

    until(are_stored)
    url = site.origin.replace("127.0.0.1", "other.test") + "/shop"
    shown = [(row["name"], row["path"], json.loads(row["props"]), row["interactive"]) for row in rows]
    assert shown == [
        ("404", "/gone", {"path": "/gone"}, False),
        ("Outbound Link: Click", "/gone", {"url": url}, True),
        ("Signup", "/gone", {"plan": "pro"}, True),
        ("engagement", "/gone", {"ms": ANY}, False),
    ]
    assert all(row["source"] == "beacon" and row["known"] for row in rows)


def test_excluded_page_sends_no_event(page: Page, site: Site, receiver: Service) -> None:
    site.body = LINKS
    for attributes in ('data-project="docs"', "data-local"):
        site.head = site.script_tag(f'{attributes} data-events="outbound downloads 404"')
        page.goto(site.origin)
        page.evaluate("addEventListener('click', click => click.preventDefault())")
        page.click("#out")
        page.evaluate("readership('Signup', {callback: () => window.called = true})")
        assert page.evaluate("called")
        assert_nothing_else_is_sent(page, receiver)
