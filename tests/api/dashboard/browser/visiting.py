"""Pages of a running dashboard in Chromium, and what went wrong in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response

SIZE = """["navigation", "resource"].flatMap(type => performance.getEntriesByType(type))
    .reduce((size, each) => size + each.decodedBodySize, 0)"""


@dataclass
class Visit:
    """A page in a browser, with the errors in its console and its requests to other hosts.

    `status` is the status of the page opened last.
    """

    page: Page
    url: str
    status: int = 0
    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    has_crashed: bool = False

    def __post_init__(self) -> None:
        self._listen()

    def _listen(self) -> None:
        self.page.on("crash", self._on_crash)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._on_request)

    def open(self, path: str) -> Response:
        """Open a page, with all of its details open, and return its response."""
        response = self.page.goto(self.url + path)
        assert response is not None
        self.status = response.status
        self.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        return response

    def become(self, session: str | None) -> None:
        """Replace the session of the browser profile, and the page if it has crashed, and clear all records."""
        context = self.page.context
        context.clear_cookies()
        if self.has_crashed:
            self.page, self.has_crashed = context.new_page(), False
            self._listen()
        if session is not None:
            context.add_cookies([{"name": "readership_session", "value": session, "url": self.url}])
        for records in (self.errors, self.foreign):
            records.clear()

    def size_bytes(self) -> int:
        """Return the size of the page and all that it loaded, without compression and headers."""
        size: int = self.page.evaluate(SIZE)
        return size

    def _on_crash(self, page: Page) -> None:
        self.has_crashed = True

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith("data:") and urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.foreign.append(request.url)


@contextmanager
def visiting(browser: Browser, url: str, session: str | None, **options: Any) -> Iterator[Visit]:
    """Yield a page of a new browser profile with this session. `options` are those of `Browser.new_context`.

    A new profile takes 0.45 s of processor time, so tests that only read share a page by `Visit.become`.
    """
    with browser.new_context(**options) as context:
        visit = Visit(context.new_page(), url)
        visit.become(session)
        yield visit
