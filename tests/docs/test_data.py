"""The tables of columns and dimensions of docs/data.md are those of the code."""

import re

from tests.warehouse.site import ROOT
from warehouse.columns.dimensions import FILTERS, dimension
from warehouse.columns.hits import COLUMNS

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
TYPES = {"string": "string", "timestamp": "timestamp, µs, UTC", "date32": "date"}
TYPES |= {"int16": "short", "int32": "integer", "int64": "long"}


def section(title: str) -> list[str]:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0].splitlines()


def test_table_of_hits_has_each_column_with_its_type_and_meaning() -> None:
    expected = [f"| {each.name} | {TYPES[each.type]} | {each.meaning} |" for each in COLUMNS]
    assert [line for line in section("`hits`: one row for each page view") if line.startswith("| ")][1:] == expected


def test_table_of_dimensions_has_each_filter_with_its_title_meaning_and_values() -> None:
    rows = [line.strip("| ").split(" | ") for line in section("Dimensions") if line.startswith("| `")]
    expected = [
        (f"`{name}`", dimension(name).title, dimension(name).meaning, dimension(name).choices) for name in FILTERS
    ]
    assert [(*row[:3], tuple(re.findall(r"`(\w+)`", row[3]))) for row in rows] == expected
