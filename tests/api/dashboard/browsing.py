"""The dashboard of a running service in Chromium, with the session of a new owner."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page

from api.accounts import sessions, users
from tests.processes.running import Running
from warehouse.database.pool import Pool

BOTH = pytest.mark.parametrize("with_javascript", [True, False], ids=["with JavaScript", "without JavaScript"])


@contextmanager
def opened(browser: Browser, service: Running, engine: Pool, *, with_javascript: bool) -> Iterator[Page]:
    """Yield a page with the session of a new owner; fail if it logged an error or requested another host."""
    now_s = int(time.time())
    user = users.create(engine, f"owner {time.time_ns()}", "owner", None, now_s)
    problems: list[str] = []
    with browser.new_context(java_script_enabled=with_javascript) as context:
        if with_javascript:
            context.grant_permissions(["clipboard-read", "clipboard-write"], origin=service.url)
        token = sessions.start(engine, user.id, now_s)
        context.add_cookies([{"name": "readership_session", "value": token, "url": service.url}])
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if is_error(message) else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if is_foreign(request.url, service) else None)
        yield page
    assert problems == []


def is_error(message: ConsoleMessage) -> bool:
    """Return whether a script failed or the Content-Security-Policy blocked something; a status 4xx is no error."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def is_foreign(url: str, service: Running) -> bool:
    return urlsplit(url).netloc != urlsplit(service.url).netloc and not url.startswith("data:")
