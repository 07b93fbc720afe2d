"""Hot rows of a project as arrays. Only the rows of new batches are converted."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.blocks.cumulative import Array
from warehouse.blocks.paths import PathIds
from warehouse.blocks.selection import Selection
from warehouse.blocks.sums import Additions
from warehouse.query.time_range import TimeRange
from warehouse.rollups.schema import SOURCES, TRAFFIC

OLD_ROWS_MAX = 10_000
"""Number of rows of loaded batches that are always retained, because a report of an earlier moment may count them."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Choose = Callable[[pa.Table], pa.Table]
"""Function that returns some of the rows of `hits`."""


@dataclass(frozen=True, slots=True, eq=False)
class HotColumns:
    """Hot rows in the order of their batches. `sources` and `traffic` are indices in SOURCES and TRAFFIC."""

    batch_ids: Array
    times_us: Array
    path_ids: Array
    sources: Array
    traffic: Array

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.arrays)

    @property
    def arrays(self) -> list[Array]:
        return [getattr(self, field.name) for field in fields(self)]

    def __getitem__(self, chosen: slice | Array) -> "HotColumns":
        return HotColumns(*(each[chosen] for each in self.arrays))


def convert(hot: pa.Table, project: str, paths: PathIds, choose: Choose) -> HotColumns:
    """Return the rows of a project that `choose` returns. Paths that have no id are added to `paths`."""
    rows = choose(hot.filter(pc.field("project_id") == project))
    encoded = rows["path"].combine_chunks().dictionary_encode()
    return HotColumns(
        rows["batch_id"].to_numpy(),
        rows["ts"].cast(pa.int64()).to_numpy(),
        paths.add(encoded.dictionary)[encoded.indices.to_numpy()],
        _indices(rows["source"], SOURCES),
        _indices(rows["traffic"], TRAFFIC),
    )


def _indices(column: pa.ChunkedArray, values: tuple[str, ...]) -> Array:
    indices: Array = pc.index_in(column, value_set=pa.array(values)).cast(pa.uint8()).to_numpy()
    return indices


@dataclass(frozen=True, slots=True, eq=False)
class HotViews:
    """Hot rows of a project in the batches with first_id <= id <= last_id."""

    first_id: int
    last_id: int
    rows: HotColumns

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def read(self, hot: pa.Table, project: str, paths: PathIds, choose: Choose) -> "HotViews":
        """Return the hot rows of a snapshot, which must have some, and perhaps those of earlier and later batches.

        `choose` returns those of the rows that are counted, and is the same for all calls.
        """
        ids = hot["batch_id"].to_numpy()
        first_id, last_id = int(ids[0]), int(ids[-1])
        if not self.first_id <= first_id <= self.last_id + 1:
            return HotViews(first_id, last_id, convert(hot, project, paths, choose))
        if last_id <= self.last_id:
            return self
        new = convert(hot.slice(np.searchsorted(ids, self.last_id, "right")), project, paths, choose)
        old_rows = int(np.searchsorted(self.rows.batch_ids, first_id))
        is_trimmed = old_rows > max(OLD_ROWS_MAX, self.rows.batch_ids.size // 2)
        known = self.rows[old_rows:] if is_trimmed else self.rows
        joined = map(np.concatenate, zip(known.arrays, new.arrays, strict=True))
        return HotViews(first_id if is_trimmed else self.first_id, last_id, HotColumns(*joined))


NO_HOT_VIEWS = HotViews(0, -2, HotColumns(*(np.zeros(0, np.int64) for _ in range(5))))


def select(views: HotViews, hot: pa.Table, chosen: Selection, time_range: TimeRange) -> Additions:
    """Return the views of a selection in a time range among the hot rows of a snapshot.

    `views` are the hot rows of the project, those of the snapshot included.
    """
    ids = hot["batch_id"].to_numpy()
    batch_ids = views.rows.batch_ids
    start, end = (int(np.searchsorted(batch_ids, ids[0])), int(np.searchsorted(batch_ids, ids[-1], "right")))
    rows = views.rows[start:end]
    first_us, end_us = ((instant - _EPOCH) // _MICROSECOND for instant in (time_range.start, time_range.end))
    is_within = (rows.times_us >= first_us) & (rows.times_us < end_us)
    rows = rows[is_within & np.isin(rows.sources, chosen.sources) & chosen.has(rows.path_ids)]
    path_ids, places = _distinct(rows.path_ids)
    human, ai, bot = (
        np.bincount(places[rows.traffic == traffic], minlength=path_ids.size) * (traffic in chosen.traffic)
        for traffic in range(len(TRAFFIC))
    )
    return Additions(path_ids, (human, ai, bot))


def _distinct(ids: Array) -> tuple[Array, Array]:
    """Return the distinct ids, sorted, and the index among them of each id.

    If there are more ids than paths, they are marked instead of sorted: 0.3 ms for 120,000 ids instead of 3.2 ms.
    """
    size = int(ids.max()) + 1 if ids.size else 0
    if size > ids.size:
        return np.unique(ids, return_inverse=True)
    is_present = np.zeros(size, bool)
    is_present[ids] = True
    return np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[ids]
