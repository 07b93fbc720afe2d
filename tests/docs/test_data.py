"""The table of dimensions of docs/data.md is that of the code."""

import re

from tests.warehouse.site import ROOT
from warehouse.columns.dimensions import FILTERS, dimension

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Dimensions\n")[2].partition("\n## ")[0]


def test_table_of_dimensions_has_each_filter_with_its_title_meaning_and_values() -> None:
    rows = [line.strip("| ").split(" | ") for line in SECTION.splitlines() if line.startswith("| `")]
    expected = [
        (f"`{name}`", dimension(name).title, dimension(name).meaning, dimension(name).choices) for name in FILTERS
    ]
    assert [(*row[:3], tuple(re.findall(r"`(\w+)`", row[3]))) for row in rows] == expected
