"""Choice of the paths, sources and traffic that a report counts."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from warehouse.blocks.cumulative import Array
from warehouse.blocks.paths import PathIds
from warehouse.rollups.schema import SOURCES, TRAFFIC
from warehouse.schema import PathBounds


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """Sources and traffic, as indices in SOURCES and TRAFFIC, and the paths within bounds.

    Arrays of sums have a column for each of the sorted paths `sorted_ids`, then one for each path that was added later.
    """

    paths: PathIds
    bounds: PathBounds | None
    sorted_ids: slice
    sources: tuple[int, ...]
    traffic: tuple[int, ...]

    @property
    def width(self) -> int:
        """Return the number of columns of sorted paths."""
        return int(self.sorted_ids.stop - self.sorted_ids.start)

    def has(self, ids: Array) -> Array:
        """Return, for each path id, whether its path is within the bounds."""
        if self.bounds is None:
            return np.ones(ids.size, bool)
        is_chosen: Array = (ids >= self.sorted_ids.start) & (ids < self.sorted_ids.stop)
        is_later = ids >= self.paths.sorted_count
        if is_later.any():
            is_chosen[is_later] = self.paths.is_later_between(self.bounds)[ids[is_later] - self.paths.sorted_count]
        return is_chosen

    def columns(self, ids: Array) -> Array:
        """Return the columns of path ids that are within the bounds."""
        count = self.paths.sorted_count
        return np.where(ids < count, ids - self.sorted_ids.start, ids - count + self.width)

    def ids_of(self, columns: Array) -> Array:
        """Return the path ids of columns."""
        width = self.width
        return np.where(columns < width, columns + self.sorted_ids.start, columns - width + self.paths.sorted_count)


def select(paths: PathIds, bounds: PathBounds | None, source: str | None, traffic: Collection[str]) -> Selection:
    """Return the selection for filters. None selects all; a source that does not exist selects nothing."""
    sources = tuple(index for index, name in enumerate(SOURCES) if source in {None, name})
    kinds = tuple(index for index, name in enumerate(TRAFFIC) if name in traffic)
    return Selection(paths, bounds, paths.sorted_between(bounds), sources, kinds)
