"""Months of a block, in the cache, and the views of a report on some of their days."""

import itertools
from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from warehouse.blocks.agents import GroupedViews
from warehouse.blocks.cumulative import Array
from warehouse.blocks.months import DAYS, Key, MonthBlock, SomeDays
from warehouse.blocks.project import READ_THREADS, ProjectBlock
from warehouse.blocks.selection import Selection
from warehouse.control import policy
from warehouse.control.policy import Policy, Span
from warehouse.query.result_cache import ResultCache, compute_released
from warehouse.report.by_path import profile_views
from warehouse.report.by_path.profile_views import ProfileViews
from warehouse.report.filters import Filters
from warehouse.rollups.schema import SOURCES, TRAFFIC

_HUMAN = TRAFFIC.index("human")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class BlockMonths:
    """Months of a block, which are read when needed, and cached. `key` is the key of the block in the cache."""

    cached: ResultCache
    block: ProjectBlock
    key: Hashable

    def add(self, sums: Sequence[Array], chosen: Selection, filters: Filters, span: Span) -> None:
        """Add the views of a selection on the days of a span to `sums`, whose columns are those of the selection.

        `filters` are the filters of the report, except those that `chosen` applies. `sums` has an array for each kind
        of traffic.
        """
        keys, days = _keys(chosen, span.policy), self.block.days_by_month((span.start, span.end))
        if filters.fields:
            for index, views in read_months(partial(self._of_agents, filters), [*days]).items():
                views.add(sums, chosen, keys, days[index], is_subtracted=False)
        else:
            self._add_all(sums, chosen, keys, span)
        if markdown := _markdown_keys(chosen, span.policy):
            for index, views in read_months(partial(self._of_markdown, filters), [*days]).items():
                views.add(sums, chosen, markdown - keys, days[index], is_subtracted=False)
                views.add(sums, chosen, markdown & keys, days[index], is_subtracted=True)

    def by_day(self, chosen: Selection, filters: Filters, name: Policy, index: int) -> Array:
        """Return the views of a selection on each day of a month, added up, in a row for each kind of traffic.

        `filters` are the filters of the report, except those that `chosen` applies. `name` is the policy of the days.
        """
        keys = _keys(chosen, name)
        if filters.fields:
            sums = self._of_agents(filters, index).by_day(chosen, keys)
        else:
            sums, views = np.zeros((len(TRAFFIC), DAYS), np.int64), self.month(index).views
            for each in views.keys() & keys:
                sums[each[1]] += views[each].by_day(chosen.sorted_ids)
        if markdown := _markdown_keys(chosen, name):
            read = self._of_markdown(filters, index)
            sums += read.by_day(chosen, markdown - keys) - read.by_day(chosen, markdown & keys)
        return sums

    def month(self, index: int) -> MonthBlock:
        """Return the daily views of a month."""
        read = partial(self.block.month, index)
        return self.cached(("month", self.block, index), lambda: compute_released(read), self.key)

    def _add_all(self, sums: Sequence[Array], chosen: Selection, keys: Collection[Key], span: Span) -> None:
        dates = span.start, span.end
        cut = self.block.cut_months(dates)
        months = read_months(lambda index: self._days(index, cut[index]), [*cut])
        for key in keys:
            self.block.add(sums[key[1]][: chosen.width], key, chosen.sorted_ids, dates, months.__getitem__)

    def _days(self, index: int, days: range) -> MonthBlock | SomeDays:
        """Return the daily views of a month, at least of `days`.

        The first call for a month that is not in memory reads only some of its days, which takes half of the time: see
        `ProjectBlock.some_days`. The first call for other days reads the whole month.
        """
        if self.cached.get(("month", self.block, index)) is not None:
            return self.month(index)
        read = partial(self.block.some_days, index, days)
        some = self.cached(("some days", self.block, index), lambda: compute_released(read), self.key, evict_first=True)
        return some if some.days == days else self.month(index)

    def _of_agents(self, filters: Filters, index: int) -> GroupedViews:
        """Return the views of a month by the hits that match the filters."""
        if filters.verification is not None:
            return self._of_profiles(filters, index, is_markdown=False)
        agents = filters.agents
        key = ("agents", self.block, index, *agents.items())
        return self.cached(key, lambda: self.block.agent_month(index, agents), self.key)

    def _of_markdown(self, filters: Filters, index: int) -> GroupedViews:
        """Return the views of a month of Markdown by people that match the filters."""
        return self._of_profiles(filters, index, is_markdown=True)

    def _of_profiles(self, filters: Filters, index: int, *, is_markdown: bool) -> GroupedViews:
        agents = Filters(agent=filters.agent, operator=filters.operator, purpose=filters.purpose)
        key = ("profile views", self.block, index, agents, is_markdown)
        read = partial(profile_views.read, self.cached, self.block, index, agents, is_markdown=is_markdown)
        views: ProfileViews = self.cached(key, read, self.key)
        return views.of(filters.verification)


def read_months(read: Callable[[int], Result], indices: Sequence[int]) -> dict[int, Result]:
    """Return what `read` returns for months, by index. Several months are read in parallel."""
    if len(indices) < 2:
        return {index: read(index) for index in indices}
    with ThreadPoolExecutor(READ_THREADS, "blocks") as pool:
        return dict(zip(indices, pool.map(read, indices), strict=True))


def _keys(chosen: Selection, name: Policy) -> set[Key]:
    """Return the sources and traffic of a selection that a policy counts, if nothing is Markdown."""
    keys = itertools.product(chosen.sources, chosen.traffic)
    return {key for key in keys if policy.counts(name, SOURCES[key[0]], TRAFFIC[key[1]])}


def _markdown_keys(chosen: Selection, name: Policy) -> set[Key]:
    """Return the sources and traffic of a selection for which the policy treats Markdown and other formats differently.

    For each of these pairs, the policy counts either Markdown or all other formats.
    """
    if name != policy.BY_FORMAT or _HUMAN not in chosen.traffic:
        return set()
    return {(source, _HUMAN) for source in chosen.sources}
