"""docs/reports.md, which has the reports and their descriptions: `python -m tests.api.reference.docs` writes them."""

import re
from pathlib import Path

from api.reference import prose
from api.reports.records import REPORTS

PAGE = Path(__file__).parents[3] / "docs" / "reports.md"
_BLOCK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """Return the text of the page with all reports, and the present description of each operation that it names."""
    return _BLOCK.sub(lambda match: f"<!-- {match[1]} -->\n{_content(match[1])}\n<!-- end -->", text)


def _content(name: str) -> str:
    if name != "reports":
        return prose.of(name).own
    rows = (
        f"| `{each.operation.method} {each.operation.path}` | [{prose.of(each.id).summary}](#{each.name}) |"
        for each in REPORTS
    )
    return "\n".join(("| operation | what it does |", "|---|---|", *rows))


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
