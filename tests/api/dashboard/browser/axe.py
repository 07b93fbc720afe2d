"""Violations of WCAG that axe-core finds on a page: https://github.com/dequelabs/axe-core"""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

VENDOR = Path(__file__).parent / "vendor"
AXE = VENDOR / "axe-4.14.1.min.js"
EVERY_RULE: dict[str, Any] = {}
"""Options of axe-core for its default rules."""
COLOR_RULES = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""Options of axe-core for those of its rules whose result depends on the colours of the page."""
_VIOLATIONS = """async options => (await axe.run(options)).violations.map(each => [
    each.id, each.help, each.nodes.map(node => node.html.slice(0, 200) + ' ' + (node.any[0]?.message ?? ''))])"""


def violations(page: Page, options: dict[str, Any] = EVERY_RULE) -> list[Any]:
    """Return the id, the description and the elements of each violation on the page."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
    violated_rules: list[Any] = page.evaluate(_VIOLATIONS, options)
    return violated_rules
