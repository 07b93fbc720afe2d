"""Daily views of the paths of a project in one month by some AI agents or bots."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warehouse.blocks.cumulative import Array
from warehouse.blocks.months import DAYS
from warehouse.blocks.selection import Selection

COLUMNS = ("day", "path_id", "source", "traffic", "views")
"""Columns of `agent_paths.parquet` from which the views are made."""


@dataclass(frozen=True, slots=True, eq=False)
class AgentViews:
    """Rows of views. `sources` and `traffic` are indices in SOURCES and TRAFFIC. A path may have several rows."""

    days: Array
    ids: Array
    sources: Array
    traffic: Array
    views: Array

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in (self.days, self.ids, self.sources, self.traffic, self.views))

    def add(self, sums: Sequence[Array], chosen: Selection, days: range) -> None:
        """Add the views of a selection on some days of the month to `sums`, whose columns are those of the selection.

        `sums` has an array for each kind of traffic.
        """
        is_chosen = (self.days >= days.start) & (self.days < days.stop)
        is_chosen &= np.isin(self.sources, chosen.sources) & chosen.has(self.ids)
        for traffic in chosen.traffic:
            rows = np.flatnonzero(is_chosen & (self.traffic == traffic))
            np.add.at(sums[traffic], chosen.columns(self.ids[rows]), self.views[rows].astype(sums[traffic].dtype))

    def by_day(self, chosen: Selection, traffic: int) -> Array:
        """Return the views of a selection on each day of the month, added up, for one of its kinds of traffic."""
        is_chosen = np.isin(self.sources, chosen.sources) & chosen.has(self.ids) & (self.traffic == traffic)
        sums = np.zeros(DAYS, np.int64)
        np.add.at(sums, self.days[is_chosen].astype(np.intp) - 1, self.views[is_chosen])
        return sums
