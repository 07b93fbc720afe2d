"""Pages of paths from the ranking: the first ranks are read until no other path can be on the page.

A path that was not read has at most the views that the ranking knows of all later paths (the bound), in the months of
the range, and what the files and waiting rows that the ranking lacks add to it. The ranks are read without a statement:
DuckDB takes 5 ms to plan one over three files, which is more than reading and counting them takes.
"""

from calendar import monthrange
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.columns.filters import Filters
from warehouse.columns.sources import TRAFFIC
from warehouse.control import policy
from warehouse.control.policy import Span
from warehouse.query.snapshot import Snapshot
from warehouse.query.time_range import TimeRange, round_to_days
from warehouse.report import cells
from warehouse.report.cells import Cells, Scope
from warehouse.report.results import Counts, Listing
from warehouse.report.statements import VIEWS, Statements
from warehouse.rollups import days
from warehouse.rollups.catalog import ChosenRollups, Part
from warehouse.rollups.ranked import Ranking

ROWS_MAX, BYTES_MAX = 500_000, 32 * 1024 * 1024
"""Rows of a project, and bytes of its paths, above which a page does not read all ranks: a statement is faster."""
_COLUMNS = {"path", "traffic", "sources", "day"}  # of the ranking
_PAGE = f"""
WITH sums AS MATERIALIZED (
    SELECT path, bool_or(is_ranked) AS is_ranked, {", ".join(f"sum({name})::BIGINT AS {name}" for name in TRAFFIC)}
    FROM (SELECT *, true AS is_ranked FROM ranked WHERE path IS NOT NULL AND {{has_path}}
          UNION ALL BY NAME SELECT path, {VIEWS}, false AS is_ranked FROM {{cells}} GROUP BY path)
    GROUP BY path
)
SELECT path, human, ai, bot, human + ai AS total,
       (SELECT greatest(max(human + ai), 0) FROM sums WHERE NOT is_ranked)::BIGINT AS unread
FROM sums WHERE (is_ranked OR {{has_all}}) AND {{listed}}
"""


class Asked(NamedTuple):
    """The paths of a page. `sql` is the SQL of their condition, order, limit and offset."""

    offset: int
    limit: int
    listing: Listing
    sql: str


def page(
    statements: Statements, snapshot: Snapshot, scope: Scope, asked: Asked
) -> tuple[pa.Table, Counts | None] | None:
    """Return the rows of a page, with the row after it if there is one, and the views of all paths if they are known.

    None if the ranking cannot answer.
    """
    offset, limit, listing, _ = asked
    chosen = _choose(statements, snapshot, scope)
    if chosen is None or chosen.added.is_slow:
        return None
    project, record = str(scope.project), chosen.ranking.record
    for step, bounds in zip(record.steps, record.bounds.get(project, []), strict=False):
        if offset + limit < step and listing.order not in {"bot", "path"}:
            rows, counts = _read(statements, snapshot, scope, chosen, step, asked)
            bound = min(sum(bounds[[*record.rollups].index(part.rollup.month)] for part in chosen.counted), bounds[-1])
            if rows.num_rows > limit and rows[listing.order][-1].as_py() > bound + rows["unread"][0].as_py():
                return rows.drop_columns("unread"), counts
    if chosen.ranking.rows(project) > ROWS_MAX or cells.path_bytes([chosen.ranking.months], project) > BYTES_MAX:
        return None
    rows, counts = _read(statements, snapshot, scope, chosen, None, asked)
    return rows.drop_columns("unread"), counts


class _Chosen(NamedTuple):
    """The ranking of a scope, the rollups that it counts on `days`, and the cells that it lacks."""

    ranking: Ranking
    counted: Sequence[Part]
    days: TimeRange
    added: Cells


def _choose(statements: Statements, snapshot: Snapshot, scope: Scope) -> _Chosen | None:
    ranking, rollups = statements.ranking(), statements.rollups(snapshot)
    if ranking is None or not _COLUMNS.issuperset(scope.filters.columns) or not isinstance(scope.project, str):
        return None
    whole = round_to_days(scope.time_range).whole_days
    ranked = [part for part in rollups.parts if ranking.has(part)]
    if scope.filters.by_evidence:
        whole = (days.inside(scope.time_range),)
        covered = days.whole(snapshot, rollups, scope.project, scope.time_range)
        ranked = [part for part in ranked if days.within([part], whole[0]) <= covered]
    counted = [part for part in ranked if whole and days.within([part], whole[0])]
    if not counted:
        return None
    others = ChosenRollups(
        tuple(part for part in rollups.parts if part not in ranked), rollups.uncovered, days.within(counted, whole[0])
    )
    return _Chosen(ranking, counted, whole[0], cells.select(snapshot, others, scope, ("path", "traffic")))


def _read(
    statements: Statements, snapshot: Snapshot, scope: Scope, chosen: _Chosen, step: int | None, page: Asked
) -> tuple[pa.Table, Counts | None]:
    """Return the rows of a page of the paths whose rank is below `step`, or of all; and the views of all paths."""
    paths, views = _count(chosen, scope, step)
    ranked = pa.table([paths, *np.ascontiguousarray(views.T)], ["path", *TRAFFIC])
    if chosen.added.is_empty and not scope.filters.path and len(views):
        return _listed(ranked.slice(1), page), Counts(*map(int, views[0]))
    has_path, _ = Filters(path=scope.filters.path).condition()
    sql = _PAGE.format(cells=chosen.added.sql, has_path=has_path, has_all=step is None, listed=page.sql)
    return statements.fetch(snapshot, scope, chosen.added, sql, {"ranked": ranked}), None


def _listed(ranked: pa.Table, page: Asked) -> pa.Table:
    """Return the rows that the statement would return: a statement takes 3 ms more."""
    human, ai, bot = (ranked[name].to_numpy() for name in TRAFFIC)
    is_listed = {
        "ai_only": (ai > 0) & (human == 0),
        "people_only": (human > 0) & (ai == 0),
        "all": human + ai + bot * page.listing.with_bots > 0,
    }[page.listing.audience]
    rows = ranked.append_column("total", pa.array(human + ai)).append_column("unread", pa.repeat(0, len(ranked)))
    rows = rows.filter(pa.array(is_listed))
    keys = [] if page.listing.order == "path" else [(page.listing.order, "descending")]
    return rows.take(pc.sort_indices(rows, [*keys, ("path", "ascending")]).slice(page.offset, page.limit + 1))


def _count(chosen: _Chosen, scope: Scope, step: int | None) -> tuple[pa.ChunkedArray, npt.NDArray[np.int64]]:
    """Return the paths by rank, below `step` or all, and the views of each by people, AI and bots."""
    # Of each file, the views up to `last` less those up to `before`, of sets that meet a mask.
    slices = defaultdict[str, list[tuple[str | None, str, int]]](list, {chosen.ranking.months: []})
    for span in policy.spans(scope.filters.policy, chosen.days.start.date(), chosen.days.end.date()):
        mask = scope.filters.mask(span.policy)
        months, cut = _split(chosen.counted, span)
        for before, last in _runs([*chosen.ranking.record.rollups], months):
            slices[chosen.ranking.months].append((before, last, mask))
        for month, first, end in cut:
            slices[chosen.ranking.days(month)].append((f"until_{first}" if first else None, f"until_{end}", mask))
    paths, views = pa.chunked_array([], pa.string()), np.zeros(0)
    for file, in_file in slices.items():
        names = dict.fromkeys(name for before, last, _ in in_file for name in (last, before) if name)
        more = ["path"] if file == chosen.ranking.months else []
        rows = chosen.ranking.read(file, str(scope.project), step, ["sources", "traffic", *names, *more])
        ranks, sets = rows["rank"].to_numpy().astype(np.int64), rows["sources"].to_numpy()
        if more:
            _, first_rows = np.unique(ranks, return_index=True)
            paths, views = _decode(rows["path"], first_rows), np.zeros(3 * len(first_rows))
        traffic = pc.index_in(rows["traffic"], pa.array(TRAFFIC)).to_numpy()
        for before, last, mask in in_file:
            counted = rows[last].to_numpy().astype(np.int64)
            if before:
                counted -= rows[before].to_numpy()
            counted *= (sets & mask) != 0
            views += np.bincount(ranks * 3 + traffic, counted, len(views))
    return paths, views.astype(np.int64).reshape(-1, 3)


def _decode(paths: pa.ChunkedArray, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """Return the paths of some rows, in order. Each batch of a file has a dictionary of its own."""
    ends = np.cumsum([0, *map(len, paths.chunks)])
    cuts = np.searchsorted(rows, ends)
    chosen = (
        chunk.take(pa.array(rows[cut:end] - start))
        for chunk, start, (cut, end) in zip(paths.chunks, ends, pairwise(cuts), strict=False)
    )
    return pa.chunked_array([chunk.dictionary_decode() for chunk in chosen], pa.string())


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


def _runs(ranked: Sequence[str], months: Sequence[str]) -> Iterable[tuple[str | None, str]]:
    """Return the month before each run of consecutive months, and the last month of the run."""
    month_before = dict(zip(ranked, [None, *ranked], strict=False))
    before = [month_before[month] for month in months]
    starts, ends = (each for each in before if each not in months), (each for each in months if each not in before)
    return zip(starts, ends, strict=True)
