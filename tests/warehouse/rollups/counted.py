"""The cells of a rollup, counted in plain Python from rows, and read from its files."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC
from typing import Any

import pyarrow.parquet as pq

from tests.warehouse.report.laws.model import with_evidence
from tests.warehouse.site import Row, column
from warehouse.rollups.catalog import Rollup

READER = ("traffic", "agent", "operator", "purpose", "verification", "sources")
DEVICE = ("browser", "os", "device", "format", "status", "rule")
ORIGIN = ("channel", "referrerHost", "utmSource", "utmMedium", "utmCampaign")
ADVERTISEMENT = ("utmTerm", "utmContent", "click")
CUBES = {
    "readers": (*READER, "verifiedBy"),
    "quarters": ("traffic", "sources", "quarter"),
    "reader_quarters": (*READER, "verifiedBy", "quarter"),
    "devices": (*READER, *DEVICE),
    "origins": (*READER, *ORIGIN),
    "page_views": (*READER, *DEVICE, *ORIGIN),
    "places": (*READER, "country", "language"),
    "advertisements": (*READER, *ORIGIN, *ADVERTISEMENT),
    "paths": ("path", *READER),
}
"""Columns of each cube."""
EVIDENCE = ("script", "assets", "navigation", "none", "not_measured", None)
WITHOUT_MONTHS = {"quarters", "reader_quarters"}
VISITORS = (
    "dimension",
    "value",
    "agent",
    "operator",
    "purpose",
    "verification",
    "browser",
    "os",
    "device",
    "quarter",
    "sources",
)
"""Columns of the cube of visitors and visits, whose numbers `laws.visited` models."""
Cells = dict[str, Counter[tuple[Any, ...]]]
"""Views by cube, and by the values of a cell: project, day of the month or 0 for the month, and the cube's columns.

The number of those with a visitor has the name of the cube with `identified` after it.
"""


def cells(rows: Iterable[Row]) -> Cells:
    """Return the cells of all rows of a month, without loads of assets."""
    result: Cells = {f"{name}{more}": Counter() for name in CUBES for more in ("", " identified")}
    for row in with_evidence([*rows], []):
        ts, values = row["ts"].astimezone(UTC), values_of(row)
        for name, columns in CUBES.items():
            for day in (ts.day,) if name in WITHOUT_MONTHS else (ts.day, 0):
                key = row["project_id"], day, *(values[column] for column in columns)
                result[name][key] += 1
                result[f"{name} identified"][key] += row["visitor"] is not None
    return result


def values_of(row: Row) -> Row:
    ts = row["ts"].astimezone(UTC)
    is_checked = row["verification"] is not None or row["traffic"] == "human"
    return {
        **row,
        "verification": row["verification"] if is_checked else "not_checked",
        "sources": {"beacon": 1, "server": 2, "log": 4}[row["source"]]
        * (8 if row["format"] in {"md", "markdown", "text/markdown"} else 1)
        * 64 ** {"ai": 5, "bot": 6}.get(row["traffic"], EVIDENCE.index(row["evidence"])),
        "status": None if row["status"] is None else str(row["status"]),
        **{name: row[column(name)] for name in (*ORIGIN, *ADVERTISEMENT)},
        "verifiedBy": row["verified_by"],
        "quarter": ts.hour * 4 + ts.minute // 15,
    }


def stored(rollup: Rollup) -> Cells:
    """Return the cells in the files of a rollup, after a check of their columns and of their order."""
    result = {}
    for name, columns in CUBES.items():
        table = pq.read_table(rollup.folder / f"{name}.parquet")
        assert table.column_names == ["project_id", "day_of_month", *columns, "views", "identified"]
        rows = [tuple(row.values()) for row in table.to_pylist()]
        order = [(row[1] > 0, row[0], *map(_nulls_last, row[2:-2]), row[1]) for row in rows]
        assert order == sorted(order)
        result[name] = Counter({row[:-2]: row[-2] for row in rows})
        result[f"{name} identified"] = Counter({row[:-2]: row[-1] for row in rows})
        assert len(result[name]) == len(rows)
    return result


def _nulls_last(value: Any) -> tuple[bool, Any]:
    return value is None, value.encode() if isinstance(value, str) else value or 0
