"""docs/reports.md, which has the reports and their descriptions: `python -m tests.api.reference.docs` writes them."""

import re
from collections.abc import Iterable
from pathlib import Path

from api.reference import prose
from api.reports.records import REPORTS
from warehouse.control.policy import TEXTS

PAGE = Path(__file__).parents[3] / "docs" / "reports.md"
_BLOCK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """Return the text of the page with all reports, and the present description of each operation that it names."""
    return _BLOCK.sub(lambda match: f"<!-- {match[1]} -->\n{_content(match[1])}\n<!-- end -->", text)


def _content(name: str) -> str:
    if name == "reports":
        named = ((each.operation, f"[{prose.of(each.id).summary}](#{each.name})") for each in REPORTS)
        return _table("operation", ((f"`{one.method} {one.path}`", link) for one, link in named))
    if name == "policies":
        return _table("policy", ((f"`{each}`", text) for each, text in TEXTS.items()))
    return prose.of(name).own


def _table(name: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"| {first} | {second} |" for first, second in rows)
    return "\n".join((f"| {name} | what it does |", "|---|---|", *lines))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
