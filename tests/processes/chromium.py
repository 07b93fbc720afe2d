"""Chromium, for the tests of pages."""

import os

from playwright.sync_api import Browser, Playwright

from tests.programs import find, require

ARGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--no-proxy-server", "--host-resolver-rules=MAP *.test 127.0.0.1",
]  # fmt: skip
NOT_AUTOMATED = "--disable-blink-features=AutomationControlled"
"""Option that sets `navigator.webdriver` to false. Without it beacon.js sends nothing."""


def launch(playwright: Playwright, *more_args: str) -> Browser:
    """Start Chromium with ARGS and `more_args`, and return the browser. Skip the test if Chromium is not installed."""
    require("chromium")
    environ: dict[str, str | float | bool] = dict(os.environ)
    environ.pop("LD_PRELOAD", None)  # with the library of `make clock`, renderers crash; pages have the real clock
    return playwright.chromium.launch(executable_path=find("chromium"), args=[*ARGS, *more_args], env=environ)
