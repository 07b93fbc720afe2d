"""Visitors and visits of a scope: from days of rollups, and from all rows of other days."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import reduce

import pyarrow as pa

from warehouse.columns import visits
from warehouse.columns.dimensions import BY_NAME, OF_VISITS, PAGES, VISITOR_MEASURES, VISITORS, each_measure
from warehouse.columns.filters import OF_SETS, Bound, Filters
from warehouse.columns.sources import BITS, BY_EVIDENCE, BY_SOURCE, NAME, SOURCES, TRAFFIC, of_source
from warehouse.columns.visits import DEVICE_KEY, OF_VISITOR, VALUES
from warehouse.control.policy import Periods
from warehouse.errors import TooManyViews
from warehouse.query import engine
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange
from warehouse.report import cells
from warehouse.report.cells import SLOW_ROWS, Cells, Scope
from warehouse.report.measured import Measured, Span, clipped, midnight, of_kinds
from warehouse.report.statements import Statements
from warehouse.rollups import days
from warehouse.rollups.days import files_of
from warehouse.tables import HITS_TABLE

VIEWS_MAX = 5_000_000
"""Maximum number of views of a project in a report by dimensions that no rollup counts: a million take 2.3 s."""
FAST_VIEWS_MAX = 1_000_000
"""Number of these views above which the report is slow."""
PART_ROWS = 400_000
"""Number of views whose visitors one statement counts, or fewer: 836,000 need more than 256 MB."""
COUNTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{kind: ("visitors", (kind,)) for kind in TRAFFIC},
    "total": ("visitors", ("human", "ai")),
    **{each.name: (each.name, ("human",)) for each in VISITOR_MEASURES[1:]},
}
"""Columns of `counts`, each with its measure and the readers that it counts. `total` is a union of people and AI."""
COLUMNS = (*COUNTS, "timed")
"""Columns of `counts` that are numbers."""
_IN_BEACONS = ("bounces", "visit_seconds")
"""Measures of visits that only the script of a page can know: it also sends views that a browser's cache answers."""
_MASKS_OF = {"source": BY_SOURCE, "evidence": BY_EVIDENCE}


def masks_of(name: str) -> str:
    """Return the join of cells with each value of a dimension of OF_SETS, and with its mask `of_...`."""
    values = ", ".join(f"(nullif('{value or ''}', ''), {mask})" for value, mask in _MASKS_OF[name])
    return f"CROSS JOIN (VALUES {values}) AS {name}s ({name}, of_{name})"


def matching(snapshot: Snapshot, scope: Scope, by: str, share: str, rows: str, bound: Bound) -> dict[str, str]:
    """Return the SELECT `of_scope` of a share of the visitors (`visits.each_visitor`), with its join `by_set`, its
    condition `matches` and its mask `seen`. What they bind is added to `bound`."""
    filters = scope.filters
    keys = [name for name in filters.fields if name in OF_VISITOR]
    filtered = visits.values_of(name for name in filters.fields if name not in {"traffic", *OF_SETS})
    condition = " AND ".join(filters.conditions(filtered, bound)) or "true"
    names = dict.fromkeys([*([] if by in {"", *OF_SETS} else [by]), *keys])
    by_evidence = filters.by_evidence or by == "evidence"
    evident = days.evident(snapshot, scope.time_range, share, ())[0] if by_evidence else None
    of_range = f"{share} AND ts >= $start AND ts < $end"
    return {
        "of_scope": visits.each_visitor(rows, of_range, names, filtered, condition, evident),
        "by_set": masks_of(by) if by in OF_SETS else "",
        "seen": f"(sources & of_{by})" if by in OF_SETS else "sources",
        "matches": " AND ".join(filters.conditions(keys, bound)) or "true",
    }


def counts(statements: Statements, snapshot: Snapshot, scope: Scope, *by: str) -> pa.Table:
    """Return the visitors and visits by some dimensions: these columns and COLUMNS, without rows of zeros.

    `timed` is the number of visits that `bounces` and `visit_seconds` count.

    Raises:
        TooManyViews
    """

    def fetch() -> pa.Table:
        columns, by_evidence = [name for name in by if name not in OF_SETS], "evidence" in by
        return reduce(add, map(count, select(statements, snapshot, scope, columns, by_evidence=by_evidence)))

    def add(sums: pa.Table, part: pa.Table) -> pa.Table:
        both = pa.concat_tables([sums, part]).group_by([*by]).aggregate([(name, "sum") for name in COLUMNS])
        return both.select([*by, *(f"{name}_sum" for name in COLUMNS)]).rename_columns([*by, *COLUMNS])

    def count(chosen: Cells) -> pa.Table:
        seen, relation, bound = "sources", chosen.sql, chosen.bound
        for name in {*by} & {*OF_SETS}:
            seen = f"{seen} & of_{name}"
            relation = f"{relation} {masks_of(name)}"
        sums = ", ".join(
            f"coalesce(sum({measure}) FILTER ({seen} & {scope.filters.visitor_mask(kinds, bound)}{of} <> 0), 0)::BIGINT"
            f" AS {name}"
            for name, (measure, kinds) in {**COUNTS, "timed": ("visits", ("human",))}.items()
            for of in (f" & {of_source(SOURCES[0])}" if name in (*_IN_BEACONS, "timed") else "",)
        )
        names = "".join(f"{name}, " for name in by)
        sql = f"SELECT {names}{sums} FROM {relation} GROUP BY ALL"
        return statements.fetch(snapshot, scope, chosen, f"FROM ({sql}) WHERE human + ai + bot + visits > 0")

    return statements.cached(("visitors", scope, by, snapshot.rows_key), fetch)


def pages_of_visits(statements: Statements, snapshot: Snapshot, scope: Scope, by: str) -> pa.Table:
    """Return the entry or exit pages of visits, with the views of these visits: value, human, ai, bot and total.

    The order is most visits first, then the byte order of the pages.
    """
    rows = counts(statements, snapshot, scope, by).sort_by([("visits", "descending"), (by, "ascending")])
    none = pa.repeat(0, len(rows)).cast(pa.int64())
    views = rows["visit_views"]
    return pa.table({"value": rows[by], "human": views, "ai": none, "bot": none, "total": views})


def first_days(statements: Statements, snapshot: Snapshot, project: str) -> dict[str, date]:
    """Return the first UTC day on which the visitor of a view of each source is known; other sources are left out."""
    scope = Scope(project, TimeRange(), Filters())

    def fetch() -> pa.Table:
        chosen = cells.select(snapshot, statements.rollups(snapshot), scope, ["sources", "day"])
        sql = f"SELECT {NAME} AS source, min(day) FROM {chosen.sql} WHERE identified > 0 GROUP BY 1"
        return statements.fetch(snapshot, scope, chosen, sql)

    rows = statements.cached(("first visitors", project, snapshot.rows_key), fetch)
    return dict(zip(*rows.to_pydict().values(), strict=True))


def known(statements: Statements, snapshot: Snapshot, project: str, measured: Measured, policy: Periods) -> Measured:
    """Return when the visitors of each kind of readers were known, among the times in which these were measured."""
    days = first_days(statements, snapshot, project)
    of_sources = {
        source: clipped(spans, Span(midnight(days[source].toordinal()), None))
        for source, spans in measured.of_sources.items()
        if source in days
    }
    return replace(measured, spans=of_kinds(of_sources, policy), of_sources=of_sources)


def views_of_days(
    statements: Statements, snapshot: Snapshot, project: str | tuple[str, ...], time_range: TimeRange
) -> dict[date, int]:
    """Return the views of a project in a range, those of bots included, on each UTC day that has one, in order."""
    scope = Scope(project, time_range, Filters())

    def fetch() -> pa.Table:
        chosen = cells.select(snapshot, statements.rollups(snapshot), scope, ["day"])
        return statements.fetch(snapshot, scope, chosen, f"SELECT day, sum(views)::BIGINT FROM {chosen.sql} GROUP BY 1")

    rows = statements.cached(("views of days", scope, snapshot.rows_key), fetch).to_pydict()
    return dict(sorted(zip(*rows.values(), strict=True)))


def select(
    statements: Statements, snapshot: Snapshot, scope: Scope, by: Collection[str], *, by_evidence: bool = False
) -> Iterator[Cells]:
    """Yield the cells of the visitors and visits of a scope with some columns, in parts of different visitors.

    A day of a rollup counts if the range has all of it, and if it has no other file and no waiting row: the visitors
    of the parts of a day cannot be added.
    """
    rollups = statements.rollups(snapshot)
    fields, bound = scope.filters.fields, Bound(project=scope.project)
    by_evidence = by_evidence or scope.filters.by_evidence
    keys = [name for name in fields if name in OF_VISITOR]
    filtered = visits.values_of(name for name in fields if name not in {"traffic", *OF_SETS})
    condition = " AND ".join(scope.filters.conditions(filtered, bound)) or "true"
    names = dict.fromkeys([*by, *keys, *(["day"] if scope.filters.policy else [])])
    is_exact = all(name in by or "*" not in fields.get(name, "") for name in PAGES)
    is_exact &= not (scope.filters.by_format and {*filtered} & {*OF_VISITS} - {*by})
    dimension = _dimension({*names, *filtered}, is_exact=is_exact)
    selects, covered = list[str](), frozenset[str]()
    if dimension is not None:
        covered = days.whole(snapshot, rollups, scope.project, scope.time_range)
        cuts, by_day = scope.filters.policy_days, "day" in by or dimension == "quarter"
        for files, month, is_valid in days.of_cube(rollups, covered, VISITORS, cuts, by_day=by_day):
            selects.append(_of_files(files, dimension, names, month, f"{is_valid} AND {condition}"))
    matches = " AND ".join(scope.filters.conditions(keys, bound)) or "true"
    read = [file for file in snapshot.files if file.partition not in covered]
    rows, shares = parts(statements, snapshot, scope, covered, by_evidence=by_evidence)
    weighed = rows if dimension is not None else weight(rows, [*names, *filtered])
    for within, share in shares:
        bound_of_part = {**bound, "start": within.start, "end": within.end}
        if relation := days.rows(snapshot, within, files_of(read, within)):
            evident = days.evident(snapshot, within, share, covered)[0] if by_evidence else None
            events = days.events(snapshot, within, covered)
            chosen = f"{share} AND ts >= $start AND ts < $end"
            selects.append(f"({visits.cells(relation, chosen, [*names], filtered, condition, evident, events)})")
        union = " UNION ALL ".join(selects or [_nothing(names)])
        yield Cells(f"(FROM ({union}) WHERE {matches})", bound_of_part, weighed)
        selects = []


def weight(views: int, names: Collection[str]) -> int:
    """Return the weight in rows of views that are read one by one, by these dimensions. Raises TooManyViews"""
    if views > VIEWS_MAX:
        raise TooManyViews(views, VIEWS_MAX, [*dict.fromkeys(names)])
    return views * (SLOW_ROWS // FAST_VIEWS_MAX)


def parts(
    statements: Statements, snapshot: Snapshot, scope: Scope, covered: Collection[str], *, by_evidence: bool
) -> tuple[int, Iterator[tuple[TimeRange, str]]]:
    """Return the number of views of days that are not covered, and their parts: a range and a condition on visitors.

    A part has days with at most PART_ROWS views, or a share of the visitors of a larger day.
    """
    counted = days.around(scope.time_range) if by_evidence else scope.time_range  # evidence reads whole days
    starts, views = [scope.time_range.start], [0]
    read = [file for file in files_of(snapshot.files, counted) if file.partition not in covered]
    if sum(file.rows for file in read) > PART_ROWS:  # the files also have rows of other projects
        for day, count in views_of_days(statements, snapshot, scope.project, counted).items():
            if day.isoformat() not in covered:
                if views[-1] and views[-1] + count > PART_ROWS:
                    starts.append(midnight(day.toordinal()))
                    views.append(0)
                views[-1] += count
    ranges = map(TimeRange, starts, [*starts[1:], scope.time_range.end])
    return sum(views), (
        (within, f"project_id = $project AND visitor % {shares} IN ({share}, {-share})")
        for within, shares in zip(ranges, (1 + each // PART_ROWS for each in views), strict=True)
        for share in range(shares)
    )


def _dimension(names: Collection[str], *, is_exact: bool) -> str | None:
    """Return the dimension of VISITORS by which its cells have these columns; None if only `hits` has all of them."""
    values, with_device = visits.values_of(names), not {*DEVICE_KEY}.isdisjoint(names)
    if "second" in names or not is_exact or not {*values} <= {*VALUES}:
        return None
    found = [*values, *(["quarter"] if "quarter" in names else [])]
    return None if len(found) > 1 or (found and with_device) else (found or [""])[0]


def _nothing(names: Collection[str]) -> str:
    """Return a SELECT without cells. `visits.cells` over no rows would take 20 ms to plan."""
    shown = "".join(f"{BY_NAME[name].sql} AS {name}, " for name in names)
    rows = engine.no_rows(HITS_TABLE, "evidence", *OF_VISITS)
    return f"SELECT {shown}{BITS} AS sources, {each_measure('0::BIGINT AS {name}', VISITOR_MEASURES)} FROM {rows}"


def _of_files(files: list[str], dimension: str, names: Collection[str], month: str, condition: str) -> str:
    """Return the SELECT of cells of a dimension. The visits of a path are those that began on it."""
    day = f"(({month} || '-01')::DATE + greatest(day_of_month::INTEGER - 1, 0)) AS day"
    shown = "".join(f"{day if name == 'day' else name}, " for name in names)
    visitors = "visitors" if dimension != "path" else "if(dimension = 'path', visitors, 0)"
    measures = f"{visitors}::BIGINT AS visitors, {each_measure('{name}::BIGINT AS {name}', VISITOR_MEASURES[1:])}"
    dimensions = "'path', 'entryPage'" if dimension == "path" else f"'{dimension}'"
    value = f", value AS {dimension}" if dimension in VALUES else ""
    return (
        f"SELECT {shown}sources, {measures} FROM (SELECT *{value} FROM {engine.parquet_at(files)})"
        f" WHERE project_id = $project AND dimension IN ({dimensions}) AND {condition}"
    )
