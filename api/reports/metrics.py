"""Visitors, visits and bytes of a report, as columns of its table and fields of its JSON."""

from bisect import bisect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from api.reports.documents import VisitorCounts
from api.reports.measured import Hidden, hide
from warehouse.columns.dimensions import OF_VISITS
from warehouse.columns.sources import TRAFFIC
from warehouse.report.audience.visitors import COLUMNS

_COUNT, _RATIO = pa.int64(), pa.float64()
VISITORS = {"human": "visitorsHuman", "ai": "visitorsAi", "total": "visitorsTotal"}
"""Columns of visitors, by kind of readers."""
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
_FIELDS = {
    "bounceRate": "bounce_rate",
    "visitDuration": "visit_duration",
    "viewsPerVisit": "views_per_visit",
    "bytesKnown": "bytes_known",
}


def schema(columns: pa.Schema, metrics: Collection[str]) -> pa.Schema:
    """Return the columns of a table with metrics."""
    return pa.schema([*columns, *(field for name, fields in METRICS.items() if name in metrics for field in fields)])


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
    known = pc.round(_ratio(pc.multiply(counts["sized"], 100), counts["requests"]), 1)
    return pa.table({"bytes": pc.if_else(pc.equal(counts["sized"], 0), None, counts["bytes"]), "bytesKnown": known})


def append(rows: pa.Table, *tables: pa.Table) -> pa.Table:
    """Return rows with the columns of other tables of as many rows."""
    for name, column in ((name, each[name]) for each in tables for name in each.column_names):
        rows = rows.append_column(name, column)
    return rows


def whole(counts: pa.Table) -> pa.Table:
    """Return the visitors and visits of a whole range as one row, of zeros without a visitor."""
    return taken(counts, pa.array([0 if counts.num_rows else None], pa.int32()))


def unknown(views: pa.Table, counts: pa.Table, identified: Callable[[], pa.Table]) -> Hidden:
    """Return for which rows nothing is known of the visitors: there are views, and the visitor of none is known.

    A row of known visitors may have 0 visitors: they count at the first view of a day. `identified` returns the views
    of known visitors.
    """
    none = {name: pc.and_(pc.greater(pc.fill_null(views[name], 0), 0), pc.equal(counts[name], 0)) for name in VISITORS}
    if not any(pc.any(flags).as_py() for flags in none.values()):
        return {}
    known = identified()
    known = {"human": known["human"], "ai": known["ai"], "total": pc.add(known["human"], known["ai"])}
    return {name: pc.and_(flags, pc.equal(known[name], 0)).to_pylist() for name, flags in none.items()}


def columns_of_values(
    by: str, counts: pa.Table, identified: Callable[[], pa.Table], unmeasured: Hidden, rows: pa.Table
) -> pa.Table:
    """Return the columns of the metrics of visitors and visits of rows of a breakdown. `identified`: see `unknown`."""
    of_rows, of_views = of_values(rows, by, counts), lambda: of_values(rows, by, identified(), TRAFFIC)
    return columns(of_rows, unmeasured, {} if by in OF_VISITS else unknown(rows, of_rows, of_views))


def columns(counts: pa.Table, *unmeasured: Hidden) -> pa.Table:
    """Return the columns of the metrics of visitors and visits, by the counts of each row.

    A count of 0 that was not measured becomes null, and so does a ratio without a visit.
    """
    shown = {
        **{column: counts[name] for name, column in VISITORS.items()},
        "visits": counts["visits"],
        "bounceRate": pc.round(_ratio(pc.multiply(counts["bounces"], 100), counts["timed"]), 1),
        "visitDuration": pc.round(_ratio(counts["visit_seconds"], counts["timed"])).cast(_COUNT),
        "viewsPerVisit": pc.round(_ratio(counts["visit_views"], counts["visits"]), 2),
    }
    rows, of_readers = pa.table(shown), (*VISITORS.items(), ("human", "visits"))
    for each in unmeasured:
        rows = hide(rows, {column: each[name] for name, column in of_readers if name in each})
    return rows


def fields(row: dict[str, Any], metrics: Collection[str]) -> dict[str, Any]:
    """Return the fields of `documents.Counts` of a row."""
    named = {field.name: row[field.name] for name in metrics if name != "visitors" for field in METRICS[name]}
    if "visitors" in metrics:
        named["visitors"] = VisitorCounts(**{name: row[column] for name, column in VISITORS.items()})
    return {_FIELDS.get(name, name): value for name, value in named.items()}


def taken(counts: pa.Table, indices: pa.Array, names: Sequence[str] = COLUMNS) -> pa.Table:
    """Return columns of some rows, with zeros for an unknown index."""
    return pa.table({name: pc.fill_null(counts[name].take(indices), 0) for name in names})


def _ratio(number: Any, of: Any) -> Any:
    return pc.divide(pc.cast(number, _RATIO), pc.if_else(pc.equal(of, 0), None, of))
