"""Views of each path in a time range, and their order in a report."""

import threading
from dataclasses import dataclass

import numpy as np
from cachetools import LRUCache

from warehouse.blocks import ranking
from warehouse.blocks.cumulative import Array
from warehouse.blocks.listing import Listing, Views
from warehouse.blocks.selection import Selection

HEAD_ROWS = 1_000
"""Minimum number of rows that are sorted for a page, so that the next pages need no sort."""


@dataclass(frozen=True, slots=True, eq=False)
class Additions:
    """Views of distinct path ids that are added to those of other paths."""

    ids: Array
    views: Views


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Views of path ids by source, which is an index in SOURCES. An id may have several rows."""

    ids: Array
    sources: Array
    views: Views

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in (self.ids, self.sources, *self.views))

    def signed(self, sign: int) -> "Rows":
        """Return the rows if `sign` is 1, and rows that subtract their views if it is -1."""
        human, ai, bot = (each.astype(np.int64) * sign for each in self.views)
        return self if sign == 1 else Rows(self.ids, self.sources, (human, ai, bot))

    def add(self, sums: Views, chosen: Selection) -> None:
        """Add the views of a selection to `sums`, whose columns are those of the selection."""
        is_chosen = np.isin(self.sources, chosen.sources) & chosen.has(self.ids)
        columns = chosen.columns(self.ids[is_chosen])
        for traffic in chosen.traffic:
            np.add.at(sums[traffic], columns, self.views[traffic][is_chosen].astype(sums[traffic].dtype))


class PathSums:
    """Views of the paths of a selection.

    The first ids of the last listings are cached, as many ids as there are paths. Safe to call from several threads.
    """

    def __init__(self, chosen: Selection, views: Views) -> None:
        """Create the sums of views, whose columns are those of the selection."""
        self.paths, self._chosen, self._views = chosen.paths, chosen, views
        self.totals = tuple(int(each.sum(dtype=np.int64)) for each in views)
        self._lock = threading.Lock()
        self._heads: LRUCache[Listing, tuple[Array, int]] = LRUCache(max(1, views[0].size), lambda head: head[0].size)

    @property
    def nbytes(self) -> int:
        """Return the memory of the views and of a complete order, in bytes."""
        return sum(each.nbytes for each in self._views) + 8 * self._views[0].size

    def views(self, ids: Array) -> Views:
        """Return the views of ids, which are 0 for paths that were added after this object was created."""
        columns = self._chosen.columns(ids)
        known = columns < self._views[0].size
        human, ai, bot = (np.zeros(ids.size, np.int64) for _ in range(3))
        for sums, each in zip((human, ai, bot), self._views, strict=True):
            sums[known] = each[columns[known]]
        return human, ai, bot

    def head(self, count: int, listing: Listing) -> tuple[Array, int]:
        """Return at least the first `count` ids of a listing, and the number of all of its rows."""
        with self._lock:
            ids, rows = self._heads.get(listing, (None, 0))
            if ids is None or ids.size < min(count, rows):
                self._heads[listing] = ids, rows = self._sort(max(2 * count, HEAD_ROWS), listing)
            return ids, rows

    def _sort(self, count: int, listing: Listing) -> tuple[Array, int]:
        weights = listing.weigh(self._views)
        columns = ranking.candidates(weights, count, self._chosen.width)
        ids = self._chosen.ids_of(columns)
        order = ranking.order(weights[columns], self.paths.positions(ids))[:count]
        return ids[order], int(np.count_nonzero(weights))


NO_ADDITIONS = Additions(np.zeros(0, np.int64), (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)))


def page(sums: PathSums, added: Additions, first: int, count: int, listing: Listing) -> tuple[Array, Views, int]:
    """Return the ids of some rows, in order, their views, and the number of all rows.

    Additions move a path upwards, into the listing, or out of it: a path that only AI read leaves its listing with the
    first view by people. The first rows are therefore among the paths with additions and the first ones without
    additions, of which as many more are read as paths leave.
    """
    known = sums.views(added.ids)
    before, after = listing.weigh(known), listing.weigh(_sum(known, added.views))
    end = first + count + int(np.count_nonzero((before > 0) & (after == 0)))
    ids, rows = sums.head(end, listing)
    ids = ids[:end]
    if added.ids.size:
        rows += int(np.count_nonzero(after)) - int(np.count_nonzero(before))
        # Of the additions, only those that can be on the page: a sort of 40,000 paths takes 10 ms.
        ids = np.union1d(ids, added.ids[ranking.candidates(after, first + count, 0)])
        weights = listing.weigh(views_of(sums, added, ids))
        ids, weights = ids[weights > 0], weights[weights > 0]
        ids = ids[ranking.order(weights, sums.paths.positions(ids))]
    ids = ids[first : first + count]
    return ids, views_of(sums, added, ids), rows


def views_of(sums: PathSums, added: Additions, ids: Array) -> Views:
    """Return the views of ids, additions included. The ids of the additions are sorted."""
    views = sums.views(ids)
    if added.ids.size:
        places = np.minimum(np.searchsorted(added.ids, ids), added.ids.size - 1)
        is_added = added.ids[places] == ids
        for each, more in zip(views, added.views, strict=True):
            each[is_added] += more[places[is_added]]
    return views


def _sum(views: Views, more: Views) -> Views:
    human, ai, bot = (each + other for each, other in zip(views, more, strict=True))
    return human, ai, bot
