"""Rows of a dimension of whole months, from the cache or from the files of rollups."""

from collections.abc import Collection, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from warehouse.blocks.project import READERS
from warehouse.query.result_cache import ResultCache
from warehouse.report.dimensions import rows
from warehouse.report.dimensions.rows import DimensionRows
from warehouse.rollups import sorted_rows

DIMENSIONS = ("total", "quarter", "device", "browser", "format", "status", "referrerHost")
"""Dimensions that the dashboard shows. A month of 8 million hits takes 6 MB."""
SHARED_ROW_GROUPS = 2
"""Maximum number of row groups of a project all of whose DIMENSIONS are read at once. A row group takes 10 ms."""


def read(cached: ResultCache, files: Mapping[str, str], project: str, dimension: str) -> list[DimensionRows]:
    """Return the rows of each month. `files` are files of dimensions by their month (YYYY-MM).

    Several months that are not in the cache are read in parallel.
    """
    found: list[DimensionRows | None] = [cached.get(_key(file, project, dimension)) for file in files.values()]
    known = [each for each in found if each is not None]
    if len(known) == len(files):
        return known
    read_month = partial(_read_month, cached, project, dimension)
    with ThreadPoolExecutor(READERS, "dimensions") as pool:
        return [*pool.map(read_month, files, files.values())]


def read_ahead(cached: ResultCache, month: str, file: str, project: str, dimensions: Collection[str]) -> None:
    """Read several dimensions of a month into the cache."""
    missing = [each for each in dimensions if cached.get(_key(file, project, each)) is None]
    for dimension, found in rows.read_dimensions(file, month, project, missing).items() if missing else ():
        cached.put(_key(file, project, dimension), found)


def _read_month(cached: ResultCache, project: str, dimension: str, month: str, file: str) -> DimensionRows:
    """Return the rows of a month. Of a small project, the other DIMENSIONS are read with them, into the cache."""

    def read() -> DimensionRows:
        if sorted_rows.count_row_groups(Path(file), [project]) <= SHARED_ROW_GROUPS:
            read_ahead(cached, month, file, project, {dimension, *DIMENSIONS})
        return cached.get(key) or rows.read_month(file, month, project, dimension)

    key = _key(file, project, dimension)
    return cached(key, read)


def _key(file: str, project: str, dimension: str) -> Hashable:
    return "dimension", file, project, dimension
