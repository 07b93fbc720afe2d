"""Rows of a dimension that add up to the page views of a report in a month.

The rollup counts all paths together, by each column of the filters and the source policies except the path and the
format. If a report needs one of these two, page views are read: those of its paths, or of the other paths if these have
fewer views; and people's views of Markdown, which a source policy may count from other sources.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from warehouse.blocks.project import ProjectBlock
from warehouse.query.result_cache import ResultCache
from warehouse.report.dimensions import months, page_views, path_months
from warehouse.report.dimensions.packed import PackedDimension
from warehouse.report.dimensions.page_views import PathMonth
from warehouse.report.dimensions.rows import DimensionRows
from warehouse.report.filters import Filters


@dataclass(frozen=True, slots=True)
class SignedRows:
    """Rows of a dimension, whose counts are added if `sign` is 1, and subtracted if it is -1."""

    rows: PackedDimension | DimensionRows
    sign: int


def read(
    cached: ResultCache,
    files: Mapping[str, str],
    project: str,
    dimension: str,
    filters: Filters,
    block: ProjectBlock | None,
) -> list[list[SignedRows]]:
    """Return the rows of each month, to which the filters other than the path still apply.

    `files` are files of dimensions by their month (YYYY-MM), in order. `block` is the block of the project, which is
    required if the filters need page views.
    """
    if not filters.needs_page_views:
        return [[SignedRows(rows, 1)] for rows in months.read(cached, files, project, dimension)]
    assert block is not None
    ids = block.paths.sorted_between(filters.path_bounds)
    indices = [index for index, part in enumerate(block.parts) if part.rollup.month in files]
    whole = {index: files[block.parts[index].rollup.month] for index in indices if _has_most_views(block, index, ids)}
    by_month = {block.parts[index].rollup.month: file for index, file in whole.items()}
    of_all = dict(zip(whole, months.read(cached, by_month, project, dimension), strict=True))
    views = {
        index: _differences(block, index, ids, filters) if index in whole else [page_views.of_block(block, index, ids)]
        for index in indices
    }
    rows = iter(path_months.read(cached, [*itertools.chain(*views.values())], dimension))
    return [_signed([(part, next(rows)) for part in views[index]], of_all.get(index)) for index in indices]


def _has_most_views(block: ProjectBlock, index: int, ids: slice) -> bool:
    """Return whether sorted path ids have more than half of the views of a month."""
    everything = slice(0, block.paths.sorted_count)
    of_ids, of_all = (
        sum(int(each.between(index, index + 1, paths, np.int64).sum()) for each in block.totals.values())
        for paths in (ids, everything)
    )
    return 2 * of_ids > of_all


def _differences(block: ProjectBlock, index: int, ids: slice, filters: Filters) -> list[PathMonth]:
    """Return the page views that must be corrected in the rows of all paths to count only some sorted path ids.

    They are the views of the other paths, and Markdown that people read if the source policy depends on the format.
    """
    everything = slice(0, block.paths.sorted_count)
    others = [slice(0, ids.start), slice(ids.stop, everything.stop)]
    views = [page_views.of_block(block, index, each) for each in others if each.start < each.stop]
    if filters.is_by_format:
        views.append(replace(page_views.of_block(block, index, everything), is_markdown=True))
    return views


def _signed(views: list[tuple[PathMonth, DimensionRows]], of_all: PackedDimension | None) -> list[SignedRows]:
    """Return the rows of a month: those of page views, or those of all paths with their differences."""
    if of_all is None:
        return [SignedRows(rows, 1) for _, rows in views]
    signed = [SignedRows(of_all, 1)]
    for part, rows in views:
        if part.is_markdown:  # is among the rows of all paths, without its format
            without_format = {name: column for name, column in rows.keys.items() if name != "format"}
            signed += [SignedRows(rows, 1), SignedRows(replace(rows, keys=without_format), -1)]
        else:
            signed.append(SignedRows(rows, -1))
    return signed
