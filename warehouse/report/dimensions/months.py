"""Rows of a dimension of whole months, from the cache or from the files of rollups."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.project import READ_THREADS
from warehouse.lake import roots
from warehouse.query.result_cache import ResultCache
from warehouse.report.dimensions.packed import PackedDimension, PackedMonth, pack
from warehouse.report.dimensions.rows import COLUMNS
from warehouse.rollups import sorted_rows

DIMENSIONS = ("browser", "device", "format", "os", "quarter", "referrerHost", "status", "total", "utmSource")
"""Dimensions that the dashboard shows, in order. Those of a month of 8 million hits take 1.4 MB."""
SHARED_ROW_GROUPS = 4
"""Maximum number of row groups of a small project, whose DIMENSIONS are all read at once. A row group takes 10 ms."""
_STORED = ("dimension", *COLUMNS, "day", "views")


def read(cached: ResultCache, files: Mapping[str, str], project: str, dimension: str) -> list[PackedDimension]:
    """Return the rows of each month. `files` are files of dimensions by their month (YYYY-MM).

    Several months that are not in the cache are read in parallel.
    """
    known = [_find(cached, file, project, dimension) for file in files.values()]
    if None not in known:
        return [PackedDimension(month, dimension) for month in known if month is not None]
    read_month = partial(_read_month, cached, project, dimension)
    with ThreadPoolExecutor(READ_THREADS, "dimensions") as pool:
        months = [*pool.map(read_month, files, files.values())]
    return [PackedDimension(month, dimension) for month in months]


def read_ahead(cached: ResultCache, month: str, file: str, project: str, dimensions: Collection[str]) -> None:
    """Read several dimensions of a month into the cache, by one read of the file."""
    if _is_small(file, project):
        for dimension in dimensions:
            _read_month(cached, project, dimension, month, file)
    elif missing := [(each,) for each in dimensions if _find(cached, file, project, each) is None]:
        rows = _read(file, {"project_id": project})
        for each in missing:
            cached.put(_key(file, project, each), pack(_of(rows, each), month, each))


def _find(cached: ResultCache, file: str, project: str, dimension: str) -> PackedMonth | None:
    """Return the rows of a month from the cache."""
    for dimensions in ((dimension,), DIMENSIONS):
        month: PackedMonth | None = cached.get(_key(file, project, dimensions))
        if month is not None and dimension in month.dimensions:
            return month
    return None


def _read_month(cached: ResultCache, project: str, dimension: str, month: str, file: str) -> PackedMonth:
    """Return the rows of a month. If the project is small, all DIMENSIONS are read at once."""
    known = _find(cached, file, project, dimension)
    if known is not None:
        return known
    if dimension in DIMENSIONS and _is_small(file, project):
        return cached(
            _key(file, project, DIMENSIONS),
            lambda: pack(_of(_read(file, {"project_id": project}), DIMENSIONS), month, DIMENSIONS),
        )
    wanted = {"project_id": project, "dimension": dimension}
    return cached(_key(file, project, (dimension,)), lambda: pack(_read(file, wanted), month, (dimension,)))


def _is_small(file: str, project: str) -> bool:
    return sorted_rows.count_row_groups(roots.at(file), [project]) <= SHARED_ROW_GROUPS


def _read(file: str, wanted: Mapping[str, str]) -> pa.Table:
    return sorted_rows.read(roots.at(file), wanted, _STORED, ("dimension", *COLUMNS))


def _of(rows: pa.Table, dimensions: Sequence[str]) -> pa.Table:
    """Return the rows of some dimensions."""
    return rows.filter(reduce(pc.or_, (pc.equal(rows["dimension"], each) for each in dimensions)))


def _key(file: str, project: str, dimensions: tuple[str, ...]) -> Hashable:
    return "dimensions", file, project, dimensions
