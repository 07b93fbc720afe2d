"""Chromium, for the tests of pages."""

import os

from playwright.sync_api import Browser, Error, Playwright

from tests.programs import find, require

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-proxy-server",
    "--host-resolver-rules=MAP *.test 127.0.0.1",
]
NOT_AUTOMATED = "--disable-blink-features=AutomationControlled"
"""Option that sets `navigator.webdriver` to false. Without it beacon.js sends nothing."""
STARTS_MAX = 3


def launch(playwright: Playwright, *more_args: str) -> Browser:
    """Start Chromium with ARGS and `more_args`, and return the browser. Skip the test if Chromium is not installed.

    In about one of several hundred starts of Debian's Chromium 156, each renderer ends at a check of V8
    (`VirtualMemoryCage::InitReservation`): renderers are copies of one process, whose addresses are random. Such a
    browser never opens a page, and is replaced.
    """
    require("chromium")
    environ: dict[str, str | float | bool] = dict(os.environ)
    environ.pop(
        "LD_PRELOAD", None
    )  # with the library of `make clock`, each renderer crashes; pages have the real clock
    for start in range(1, STARTS_MAX + 1):
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=[*ARGS, *more_args], env=environ)
        try:
            browser.new_page().close()
        except Error:
            browser.close()
            if start == STARTS_MAX:
                raise
        else:
            return browser
    raise AssertionError
