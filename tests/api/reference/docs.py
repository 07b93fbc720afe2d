"""docs/reports.md, which has the descriptions of the reference: `python -m tests.api.reference.docs` writes them."""

import re
from pathlib import Path

from api.reference import prose

PAGE = Path(__file__).parents[3] / "docs" / "reports.md"
_BLOCK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(text: str) -> str:
    """Return the text of the page with the present description of each operation that it names."""
    return _BLOCK.sub(lambda match: f"<!-- {match[1]} -->\n{prose.of(match[1]).own}\n<!-- end -->", text)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
