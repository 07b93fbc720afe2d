"""Visitors, visits and bytes of a report, as columns of its table and fields of its JSON."""

from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from api.reports.documents import Counts, VisitorCounts, VisitorShares
from api.reports.measured import Hidden, hide
from warehouse.report.audience.visitors import COLUMNS

_COUNT, _RATIO = pa.int64(), pa.float64()
VISITORS = {"human": "visitorsHuman", "ai": "visitorsAi", "total": "visitorsTotal"}
"""Columns of visitors, by kind of readers."""
KNOWN = {"human": "visitorsKnownHuman", "ai": "visitorsKnownAi", "total": "visitorsKnownTotal"}
"""Columns of the share of views whose visitor is known, beside the metrics of visitors and visits."""
METRICS: Mapping[str, tuple[pa.Field, ...]] = {
    "views": (),
    "visitors": tuple(pa.field(name, _COUNT) for name in VISITORS.values()),
    "visits": (pa.field("visits", _COUNT),),
    "bounceRate": (pa.field("bounceRate", _RATIO),),
    "visitDuration": (pa.field("visitDuration", _COUNT),),
    "viewsPerVisit": (pa.field("viewsPerVisit", _RATIO),),
    "bytes": (pa.field("bytes", _COUNT), pa.field("bytesKnown", _RATIO)),
}
"""Columns of each metric in a table, beside the views."""
BYTES = "bytes"
"""The metric of all requests. The other ones are of visitors and visits."""
SIZES = ("requests", "bytes", "sized")
"""Columns of requests of which the metric `bytes` is computed."""
_FIELDS = dict(zip(Counts.__struct_encode_fields__, Counts.__struct_fields__, strict=True))


def schema(columns: pa.Schema, metrics: Collection[str]) -> pa.Schema:
    fields = [field for name, fields in METRICS.items() if name in metrics for field in fields]
    known = [pa.field(name, _RATIO) for name in KNOWN.values()] if {*metrics} - {BYTES} else []
    return pa.schema([*columns, *fields, *known])


def of_values(rows: pa.Table, by: str, counts: pa.Table, names: Sequence[str] = COLUMNS) -> pa.Table:
    """Return the counts of the value of each row of a breakdown. `by` is the column of `counts` with the value."""
    values = rows["value"].combine_chunks()
    some = counts.filter(pc.is_in(counts[by], value_set=values))
    return taken(some, pc.index_in(values, value_set=some[by].combine_chunks()), names)


def of_intervals(rows: pa.Table, days: pa.Table) -> pa.Table:
    """Return the requests of each row of a series by days, weeks or months, by the requests of each day."""
    starts = rows["start"].to_pylist()
    intervals = pa.array([bisect(starts, day) - 1 for day in days["value"].to_pylist()], pa.int64())
    sums = days.append_column("interval", intervals).group_by("interval").aggregate([(name, "sum") for name in SIZES])
    indices = pc.index_in(pa.array(range(len(starts)), pa.int64()), value_set=sums["interval"].combine_chunks())
    return taken(sums.rename_columns({f"{name}_sum": name for name in SIZES}), indices, SIZES)


def sizes(counts: pa.Table) -> pa.Table:
    """Return the columns of the metric `bytes`, by the requests of each row."""
    known = _percent(counts["sized"], counts["requests"])
    return pa.table({"bytes": pc.if_else(pc.equal(counts["sized"], 0), None, counts["bytes"]), "bytesKnown": known})


def append(rows: pa.Table, *tables: pa.Table) -> pa.Table:
    """Return rows with the columns of other tables of as many rows."""
    for name, column in ((name, each[name]) for each in tables for name in each.column_names):
        rows = rows.append_column(name, column)
    return rows


def whole(counts: pa.Table) -> pa.Table:
    """Return the visitors and visits of a whole range as one row, of zeros without a visitor."""
    return taken(counts, pa.array([0 if counts.num_rows else None], pa.int32()))


def shares(views: pa.Table, identified: pa.Table) -> pa.Table:
    """Return the percentage of the views of each row whose visitor is known, by kind of readers; null without a view.

    `identified` are the views of known visitors.
    """
    human, ai = identified["human"], identified["ai"]
    known = {"human": human, "ai": ai, "total": pc.add(human, ai)}
    return pa.table({name: _percent(known[name], views[name]) for name in VISITORS})


def columns(counts: pa.Table, known: pa.Table, unmeasured: Hidden) -> pa.Table:
    """Return the columns of the metrics of visitors and visits, by the counts and the `shares` of each row.

    A count of 0 becomes null if it was not measured, or if there are views and the visitor of none is known: a row of
    known visitors may have 0 visitors, who count at the first view of a day. A ratio without a visit becomes null.
    """
    shown = {
        **{column: counts[name] for name, column in VISITORS.items()},
        "visits": counts["visits"],
        "bounceRate": pc.round(_ratio(pc.multiply(counts["bounces"], 100), counts["timed"]), 1),
        "visitDuration": pc.round(_ratio(counts["visit_seconds"], counts["timed"])).cast(_COUNT),
        "viewsPerVisit": pc.round(_ratio(counts["visit_views"], counts["visits"]), 2),
    }
    rows, of_readers = pa.table(shown), (*VISITORS.items(), ("human", "visits"))
    unknown = {name: pc.fill_null(pc.equal(known[name], 0), fill_value=False).to_pylist() for name in VISITORS}
    for each in (unmeasured, unknown):
        rows = hide(rows, {column: each[name] for name, column in of_readers if name in each})
    return append(rows, pa.table({column: known[name] for name, column in KNOWN.items()}))


def fields(row: dict[str, Any], metrics: Collection[str]) -> dict[str, Any]:
    """Return the fields of `documents.Counts` of a row."""
    named = {field.name: row[field.name] for name in metrics if name != "visitors" for field in METRICS[name]}
    if "visitors" in metrics:
        named["visitors"] = VisitorCounts(**{name: row[column] for name, column in VISITORS.items()})
    if {*metrics} - {BYTES}:
        named["visitors_known"] = known_of(row)
    return {_FIELDS.get(name, name): value for name, value in named.items()}


def known_of(row: dict[str, Any]) -> VisitorShares:
    """Return the shares of the views of a row whose visitor is known."""
    return VisitorShares(**{name: row[column] for name, column in KNOWN.items()})


def taken(counts: pa.Table, indices: pa.Array, names: Sequence[str] = COLUMNS) -> pa.Table:
    """Return columns of some rows, with zeros for an unknown index."""
    return pa.table({name: pc.fill_null(counts[name].take(indices), 0) for name in names})


def _percent(known: Any, of: Any) -> Any:
    """Return a percentage with one decimal, rounded to 0 only for none, and to 100 only for all; null of none."""
    least, most = (pc.if_else(pc.equal(known, limit), *ends) for limit, ends in ((0, (0.0, 0.1)), (of, (100.0, 99.9))))
    percent = pc.round(_ratio(pc.multiply(known, 100), of), 1)
    return pc.max_element_wise(least, pc.min_element_wise(most, percent, skip_nulls=False), skip_nulls=False)


def _ratio(number: Any, of: Any) -> Any:
    return pc.divide(pc.cast(number, _RATIO), pc.if_else(pc.equal(of, 0), None, of))
