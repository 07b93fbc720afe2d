"""Views of paths in a month, counted from page views by their profiles.

Blocks have neither the verification nor the format of page views.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from warehouse.blocks.agents import GroupedViews, group
from warehouse.blocks.cumulative import Array
from warehouse.blocks.project import ProjectBlock
from warehouse.query.result_cache import ResultCache
from warehouse.report.dimensions import page_views
from warehouse.report.dimensions.count import NOT_CHECKED, codes_of, is_peoples_markdown, matches
from warehouse.report.dimensions.path_months import count_codes, keys_of
from warehouse.report.dimensions.rows import Column
from warehouse.report.filters import Filters
from warehouse.rollups.coverage import Part
from warehouse.rollups.schema import SOURCES, TRAFFIC

DENSE_COUNTERS = 4_000_000
"""Number of counters up to which page views are counted in an array with all combinations, and not in a hash table."""
_COLUMNS = ("path_id", "day", "profile_id")
_KEY = ("source", "traffic", "verification")
_NO_VIEWS = group(*(np.zeros(0, np.uint8) for _ in range(5)))
_DAYS = 32
"""Number of values of a day of the month, 0 to 31. No view is of day 0."""


@dataclass(frozen=True, slots=True, eq=False)
class ProfileViews:
    """Views of a month by the state of verification of the hits. Of Markdown, None has the views of all hits."""

    by_state: Mapping[str | None, GroupedViews]

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.by_state.values())

    def of(self, verification: str | None) -> GroupedViews:
        """Return the views by hits with a state of verification. Views of Markdown have the state None only."""
        return self.by_state.get(verification, _NO_VIEWS)


def read(cached: ResultCache, block: ProjectBlock, index: int, agents: Filters, *, is_markdown: bool) -> ProfileViews:
    """Return the views of a month that match `agents`, which has only filters by AGENT_COLUMNS.

    If `is_markdown`, the Markdown that people read is counted, otherwise the views that have a state of verification.
    """
    part = block.parts[index]
    profiles = page_views.profiles(cached, part.rollup)
    key_of_profile, keys = keys_of(profiles, _KEY)
    is_wanted = matches(profiles.columns, agents)
    is_wanted &= is_peoples_markdown(profiles.columns) if is_markdown else _has_state(profiles.columns)
    size = int(key_of_profile.max(initial=-1)) + 2
    key_of_profile = np.where(is_wanted, key_of_profile, size - 1)
    counted = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    month = page_views.of_block(block, index, slice(0, block.paths.sorted_count))
    is_rare = is_markdown or bool(agents.fields)
    for rows in page_views.read(cached, month, _COLUMNS, is_wanted, reads_all=not is_rare):
        path_ids, days, profile_ids = (each.to_numpy() for each in _valid(rows, part).columns)
        if path_ids.size:
            first = np.int64(path_ids[0]) * _DAYS
            times = path_ids * np.int64(_DAYS) + days - first
            codes, views = count_codes(
                times * size + key_of_profile[profile_ids], (int(times[-1]) + _DAYS) * size, DENSE_COUNTERS
            )
            counted.append((codes + first * size, views))
    codes, views = (np.concatenate(column) for column in zip(*counted, strict=True))
    times, key_ids = np.divmod(codes, size)
    is_of_key = key_ids < size - 1
    path_ids, days = np.divmod(times[is_of_key], _DAYS)
    ids = block.path_ids(index).astype(np.uint32)[path_ids]
    states = dict.fromkeys([NOT_CHECKED, *keys["verification"].texts.to_pylist(), *([None] if is_markdown else [])])
    group_state = partial(_group, keys, key_ids[is_of_key], days.astype(np.uint8), ids, views[is_of_key])
    return ProfileViews({state: group_state(state) for state in states})


def _group(
    keys: Mapping[str, Column], key_ids: Array, days: Array, ids: Array, views: Array, state: str | None
) -> GroupedViews:
    """Return the views whose key has a state of verification; None for all views."""
    rows = np.flatnonzero(matches(keys, Filters(verification=state))[key_ids])
    sources, traffic = (
        codes_of(keys[name], texts).astype(np.uint8)[key_ids[rows]]
        for name, texts in (("source", SOURCES), ("traffic", TRAFFIC))
    )
    return group(days[rows], ids[rows], sources, traffic, views[rows])


def _has_state(profiles: Mapping[str, Column]) -> Array:
    """Return whether each profile has a state of verification. AI agents and bots have one."""
    has_state: Array = (profiles["verification"].codes >= 0) | (
        codes_of(profiles["traffic"], TRAFFIC) != TRAFFIC.index("human")
    )
    return has_state


def _valid(rows: pa.Table, part: Part) -> pa.Table:
    """Return the rows of the valid days of a rollup."""
    if part.is_whole:
        return rows
    valid = [int(day[-2:]) for day in part.days]
    return rows.filter(pa.array(np.isin(rows["day"].to_numpy(), valid)))
