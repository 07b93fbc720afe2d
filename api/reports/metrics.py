"""Visitors and visits beside the views of a report: columns of its table, and fields of its JSON."""

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from api.reports.documents import VisitorCounts
from api.reports.measured import Hidden, hide
from warehouse.report.audience.visitors import COLUMNS

_COUNT, _RATIO = pa.int64(), pa.float64()
_VISITORS = {"human": "visitorsHuman", "ai": "visitorsAi", "total": "visitorsTotal"}
METRICS: Mapping[str, tuple[pa.Field, ...]] = {
    "views": (),
    "visitors": tuple(pa.field(name, _COUNT) for name in _VISITORS.values()),
    "visits": (pa.field("visits", _COUNT),),
    "bounceRate": (pa.field("bounceRate", _RATIO),),
    "visitDuration": (pa.field("visitDuration", _COUNT),),
    "viewsPerVisit": (pa.field("viewsPerVisit", _RATIO),),
}
"""Columns of each metric in a table, beside the views."""
_FIELDS = {"bounceRate": "bounce_rate", "visitDuration": "visit_duration", "viewsPerVisit": "views_per_visit"}


def schema(columns: pa.Schema, metrics: Collection[str]) -> pa.Schema:
    """Return the columns of a table with metrics."""
    return pa.schema([*columns, *(field for name, fields in METRICS.items() if name in metrics for field in fields)])


def beside(rows: pa.Table, by: str, counts: pa.Table, unmeasured: Hidden) -> pa.Table:
    """Return rows of a breakdown with the columns of METRICS. `counts` are visitors and visits by the dimension."""
    values = rows["value"].combine_chunks()
    some = counts.filter(pc.is_in(counts[by], value_set=values))
    return append(rows, taken(some, pc.index_in(values, value_set=some[by].combine_chunks())), unmeasured)


def append(rows: pa.Table, counts: pa.Table, unmeasured: Hidden) -> pa.Table:
    """Return rows with the columns of METRICS, by the visitors and visits of each row."""
    shown = columns(counts, unmeasured)
    for name in shown.column_names:
        rows = rows.append_column(name, shown[name])
    return rows


def whole(counts: pa.Table) -> pa.Table:
    """Return the visitors and visits of a whole range as one row, of zeros without a visitor."""
    return taken(counts, pa.array([0 if counts.num_rows else None], pa.int32()))


def columns(counts: pa.Table, unmeasured: Hidden) -> pa.Table:
    """Return the columns of METRICS, by the visitors and visits of each row.

    A count of 0 that was not measured becomes null, and so does a ratio without a visit.
    """
    shown = {
        **{column: counts[name] for name, column in _VISITORS.items()},
        "visits": counts["visits"],
        "bounceRate": pc.round(_ratio(pc.multiply(counts["bounces"], 100), counts["timed"]), 1),
        "visitDuration": pc.round(_ratio(counts["visit_seconds"], counts["timed"])).cast(_COUNT),
        "viewsPerVisit": pc.round(_ratio(counts["visit_views"], counts["visits"]), 2),
    }
    flags = {_VISITORS[name]: each for name, each in unmeasured.items() if name in _VISITORS}
    if "human" in unmeasured:
        flags["visits"] = unmeasured["human"]
    return hide(pa.table(shown), flags)


def fields(row: dict[str, Any], metrics: Collection[str]) -> dict[str, Any]:
    """Return the fields of `documents.Counts` of a row."""
    visitors = {name: row[column] for name, column in _VISITORS.items()}
    named = {name: VisitorCounts(**visitors) if name == "visitors" else row[name] for name in metrics}
    return {_FIELDS.get(name, name): value for name, value in named.items()}


def taken(counts: pa.Table, indices: pa.Array) -> pa.Table:
    """Return COLUMNS of some rows, with zeros for an unknown index."""
    return pa.table({name: pc.fill_null(counts[name].take(indices), 0) for name in COLUMNS})


def _ratio(number: Any, of: Any) -> Any:
    return pc.divide(pc.cast(number, _RATIO), pc.if_else(pc.equal(of, 0), None, of))
