"""Views by path: a page, all paths in batches, and some paths."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange
from warehouse.report import cells, ranked_pages
from warehouse.report.cells import Cells, Scope
from warehouse.report.results import Audience, Counts, Listing, Order, ReportPage
from warehouse.report.statements import VIEWS, Statements

PATHS_MAX = 10_000
"""Maximum number of paths of a call of `first_ai_days`."""
SKIPPED_MAX = 250
"""Maximum number of paths by which a statement skips row groups."""
_PATHS = f"(SELECT *, human + ai AS total FROM (SELECT path, {VIEWS} FROM {{cells}} GROUP BY path))"
_DISTINCT = """
SELECT agent, operator, count(*)::BIGINT AS pages
FROM (
    SELECT agent, operator, path FROM {cells} WHERE traffic = 'ai'
    GROUP BY GROUPING SETS ((agent, path), (operator, path)) HAVING sum(views) > 0
)
GROUP BY ALL ORDER BY ALL
"""
_IS_LISTED: Mapping[Audience, str] = {
    "ai_only": "ai > 0 AND human = 0",
    "people_only": "human > 0 AND ai = 0",
    "all": "total > 0",
}
_ORDER: Mapping[Order, str] = {
    "path": "path",
    **{name: f"{name} DESC, path" for name in ("total", "human", "ai", "bot")},
}


def page(
    statements: Statements, snapshot: Snapshot, scope: Scope, offset: int, limit: int, listing: Listing
) -> ReportPage:
    """Return some paths in the order of a listing."""
    key = "page", scope, offset, limit, listing, snapshot.rows_key
    return statements.cached(key, lambda: _page(statements, snapshot, scope, offset, limit, listing))


def totals(statements: Statements, snapshot: Snapshot, scope: Scope) -> Counts:
    return Counts.of(statements.counts(snapshot, scope, "source"))


def every(
    statements: Statements, snapshot: Snapshot, scope: Scope, batch_rows: int, listing: Listing
) -> tuple[Counts, Iterator[pa.RecordBatch]]:
    """Return all paths in the order of a listing, in batches."""
    chosen = _cells(statements, snapshot, scope)
    sql = f"FROM {_PATHS.format(cells=chosen.sql)} WHERE {_listed(listing)}"
    batches = statements.batches(snapshot, scope, chosen, sql, batch_rows)
    return totals(statements, snapshot, scope), batches


def some(statements: Statements, snapshot: Snapshot, scope: Scope, paths: Collection[str]) -> dict[str, Counts]:
    """Return the counts of some paths. Paths without views are absent."""
    chosen = _cells(statements, snapshot, scope)
    sql = f"SELECT path, {VIEWS} FROM {chosen.sql} WHERE {_some(paths)} GROUP BY path"
    rows = statements.fetch(snapshot, scope, chosen, sql, paths=[*paths])
    return {row["path"]: Counts(row["human"], row["ai"], row["bot"]) for row in rows.to_pylist()}


def agent_pages(statements: Statements, snapshot: Snapshot, scope: Scope, by: str) -> dict[str, int]:
    """Return the number of distinct paths that each agent or operator read. Unknown ones are left out."""

    def fetch() -> pa.Table:
        chosen = _cells(statements, snapshot, scope, "agent", "operator")
        return statements.fetch(snapshot, scope, chosen, _DISTINCT.format(cells=chosen.sql))

    rows = statements.cached(("agent pages", scope, snapshot.rows_key), fetch).filter(pc.field(by).is_valid())
    return dict(zip(rows[by].to_pylist(), rows["pages"].to_pylist(), strict=True))


def first_ai_days(statements: Statements, snapshot: Snapshot, project: str, paths: Collection[str]) -> dict[str, date]:
    """Return the UTC day of the first view by AI of each path that has one."""
    assert len(paths) <= PATHS_MAX
    scope, listed = Scope(project, TimeRange(), Filters(traffic="ai")), sorted(set(paths))

    def fetch() -> pa.Table:
        chosen = _cells(statements, snapshot, scope, "day")
        sql = f"SELECT path, min(day) FROM {chosen.sql} WHERE {_some(listed)} GROUP BY path"
        return statements.fetch(snapshot, scope, chosen, sql, paths=listed)

    rows = statements.cached(("first days", project, *listed, snapshot.rows_key), fetch)
    return dict(zip(*rows.to_pydict().values(), strict=True))


def _page(
    statements: Statements, snapshot: Snapshot, scope: Scope, offset: int, limit: int, listing: Listing
) -> ReportPage:
    shown = f"{_listed(listing)} LIMIT {limit + 1} OFFSET {offset}"
    ranked = ranked_pages.page(statements, snapshot, scope, ranked_pages.Asked(offset, limit, listing, shown))
    if ranked is None:
        chosen = _cells(statements, snapshot, scope)
        sql = f"FROM {_PATHS.format(cells=chosen.sql)} WHERE {shown}"
        ranked = statements.fetch(snapshot, scope, chosen, sql), None
    rows, counts = ranked
    counts = counts or totals(statements, snapshot, scope)
    return ReportPage(counts, rows.slice(0, limit), rows.num_rows > limit)


def _some(paths: Collection[str]) -> str:
    """Return the condition of some paths, bound as a list. Few of them are constants, which skip row groups."""
    if len(paths) > SKIPPED_MAX:
        return "path IN (SELECT unnest($paths::VARCHAR[]))"
    return f"path IN ({', '.join(f'$paths[{number}]' for number in range(1, len(paths) + 1)) or 'NULL'})"


def _cells(statements: Statements, snapshot: Snapshot, scope: Scope, *more: str) -> Cells:
    return cells.select(snapshot, statements.rollups(snapshot), scope, ("path", "traffic", *more))


def _listed(listing: Listing) -> str:
    """Return the condition and the order of a listing."""
    is_any = listing.with_bots and listing.audience == "all"
    is_listed = "human + ai + bot > 0" if is_any else _IS_LISTED[listing.audience]
    return f"{is_listed} ORDER BY {_ORDER[listing.order]}"
