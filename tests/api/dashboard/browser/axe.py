"""Violations of WCAG that axe-core finds on a page: https://github.com/dequelabs/axe-core"""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

VENDOR = Path(__file__).parent / "vendor"
AXE = VENDOR / "axe-4.14.1.min.js"
_VIOLATIONS = """async () => (await axe.run()).violations.map(each => [
    each.id, each.help, each.nodes.map(node => node.html.slice(0, 200) + ' ' + (node.any[0]?.message ?? ''))])"""


def violations(page: Page) -> list[Any]:
    """Return the id, the description and the elements of each violation on the page."""
    page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
    found: list[Any] = page.evaluate(_VIOLATIONS)
    return found
