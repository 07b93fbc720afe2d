"""Pages of paths from the ranking: the first ranks are read until no other path can be on the page.

Views in a range are at most the views of all months, by which the paths are ranked. A path that was not read has at
most the views of the next rank (the bound), and what the files and waiting rows that the ranking lacks add to it.
"""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby

import pyarrow as pa

from warehouse.columns import sources
from warehouse.columns.filters import Filters
from warehouse.control import policy
from warehouse.control.policy import DEFAULT, Span
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import round_to_days
from warehouse.report import cells
from warehouse.report.cells import Cells, Scope
from warehouse.report.results import Listing
from warehouse.report.statements import VIEWS, Statements
from warehouse.rollups import cubes
from warehouse.rollups.catalog import ChosenRollups, Part
from warehouse.rollups.ranked import Ranking

_FILTERS = {"path", "traffic", "source"}
"""Filters by columns of the ranking."""
_PAGE = f"""
WITH sums AS MATERIALIZED (SELECT path, min(rank) AS rank, {VIEWS} FROM ({{cells}}) GROUP BY path)
SELECT path, human, ai, bot, human + ai AS total,
       (SELECT greatest(max(human + ai), 0) FROM sums WHERE rank IS NULL)::BIGINT AS unread
FROM sums WHERE {{is_read}} AND {{listed}}
"""


def page(
    statements: Statements, snapshot: Snapshot, scope: Scope, offset: int, limit: int, listing: Listing, listed: str
) -> pa.Table | None:
    """Return the rows of a page and, if there are more, the row after it; None if the ranking cannot answer.

    `listed` is the SQL of the condition, the order, the limit and the offset of the page.
    """
    ranking, rollups = statements.ranking(), statements.rollups(snapshot)
    if ranking is None or not _FILTERS.issuperset(scope.filters.fields) or not isinstance(scope.project, str):
        return None
    ranked = [part for part in rollups.parts if ranking.has(part)]
    others = ChosenRollups(tuple(part for part in rollups.parts if part not in ranked), rollups.uncovered)
    added = cells.select(snapshot, others, scope, ("path", "traffic"))
    if added.is_slow:
        return None
    bounds = ranking.record.bounds.get(scope.project, [])
    for step, bound in zip(ranking.record.steps, bounds, strict=False):
        if offset + limit < step and listing.order not in {"bot", "path"}:
            rows = statements.fetch(snapshot, scope, added, _sql(ranking, ranked, scope, added, listed, step))
            if rows.num_rows > limit:
                least = rows[listing.order][-1].as_py()
                if least > bound + rows["unread"][0].as_py():
                    return rows.drop_columns("unread")
    if cells.has_many_paths([ranking.months], scope.project):
        return None
    rows = statements.fetch(snapshot, scope, added, _sql(ranking, ranked, scope, added, listed, None))
    return rows.drop_columns("unread")


def _sql(ranking: Ranking, parts: Sequence[Part], scope: Scope, added: Cells, listed: str, step: int | None) -> str:
    """Return the statement of a page that reads the ranks below `step`, or all."""
    filters = scope.filters
    has_path, _ = Filters(path=filters.path).condition()
    matches, _ = Filters(traffic=filters["traffic"], source=filters["source"]).condition()
    is_ranked = f"project_id = $project AND {has_path}" + (f" AND rank < {step}" if step else "")
    terms, selects = ["0"], list[str]()
    if not added.is_empty:
        selects.append(f"SELECT path, NULL::UINTEGER AS rank, traffic, views FROM {added.sql}")
    for days in round_to_days(scope.time_range).whole_days:
        for span in policy.spans(filters.policy, days.start.date(), days.end.date()):
            counts = matches
            if span.policy != DEFAULT:
                counts += f" AND sources & {sources.of_policy(span.policy)} <> 0"
            months, cut = _split(parts, span)
            terms += (f"if({counts}, {views}, 0)" for views in _runs([*ranking.record.rollups], months))
            selects += (
                f"SELECT path, rank, traffic, ({_until(last)} - {_until(before)})::BIGINT AS views "
                f"FROM {cubes.parquet(ranking.days(month))} WHERE {is_ranked} AND {counts}"
                for month, before, last in cut
            )
    views = f"({' + '.join(terms)})::BIGINT AS views"
    selects.append(f"SELECT path, rank, traffic, {views} FROM {cubes.parquet(ranking.months)} WHERE {is_ranked}")
    is_read = "rank IS NOT NULL" if step else "true"
    return _PAGE.format(cells=" UNION ALL ".join(selects), is_read=is_read, listed=listed)


def _split(parts: Sequence[Part], span: Span) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the whole months in a span, and the others: the month, the day before its first day, and its last day."""
    months, cut = list[str](), list[tuple[str, int, int]]()
    for part in parts:
        first = date.fromisoformat(f"{part.rollup.month}-01")
        end = first.replace(day=monthrange(first.year, first.month)[1])
        start, last = max(first, span.start), min(end, span.end - timedelta(days=1))
        if (start, last) == (first, end):
            months.append(part.rollup.month)
        elif start <= last:
            cut.append((part.rollup.month, start.day - 1, last.day))
    return months, cut


def _runs(ranked: Sequence[str], months: Sequence[str]) -> Iterator[str]:
    """Yield the views of each run of consecutive months, as a difference of two cumulative columns."""
    numbers = [ranked.index(month) for month in months]
    for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        run_numbers = [number for _, number in run]
        before = f'"{ranked[run_numbers[0] - 1]}"' if run_numbers[0] else "0"
        yield f'"{ranked[run_numbers[-1]]}"::BIGINT - {before}'


def _until(day: int) -> str:
    return f"until_{day}" if day else "0"
