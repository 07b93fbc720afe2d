"""Views of some paths by day are those of a plain count, under each source policy and filter."""

import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from warehouse.blocks import project, selection
from warehouse.blocks.months import DAYS
from warehouse.report.by_path.block_months import BlockMonths

from tests.rounds import rounds
from tests.warehouse.report.laws import reference
from tests.warehouse.report.laws.reference import FILTERS, ROWS
from tests.warehouse.report.test_path_reports import coverage
from tests.warehouse.site import Row, view
from warehouse.columns.filters import Filters
from warehouse.columns.sources import TRAFFIC
from warehouse.control.policy import BY_FORMAT, POLICIES, Period, Policy, Span
from warehouse.lake.delta_table import File
from warehouse.query.result_cache import ResultCache
from warehouse.query.time_range import TimeRange
from warehouse.report.cells import Scope

MARKDOWN_AND_A_PAGE = [
    view(source="beacon", format="markdown"),
    view(source="log", format="markdown"),
    view(source="beacon"),
    view(source="log", traffic="ai"),
]
"""Views of which the policy BY_FORMAT leaves out the first."""


@settings(max_examples=rounds(60))
@given(st.lists(ROWS, max_size=20), st.sets(st.integers(1, 31), max_size=3), FILTERS, st.sampled_from(POLICIES))
@example(MARKDOWN_AND_A_PAGE, set(), Filters(), BY_FORMAT)
@example(MARKDOWN_AND_A_PAGE, set(), Filters(verification="not_checked"), BY_FORMAT)
def test_views_by_day_are_those_of_a_plain_count(
    stored: list[Row], invalid: set[int], filters: Filters, policy: Policy
) -> None:
    scope = Scope("site", TimeRange(), replace(filters, policy=(Period(date.min, policy),)))
    days = sorted({row["ts"].date().isoformat() for row in stored})
    with tempfile.TemporaryDirectory() as folder:
        covering = coverage(Path(folder), [File("", day, 0, 0) for day in days], stored, set(range(1, 32)), invalid)
        block, cached = project.read(covering.parts, "site"), ResultCache(10_000_000)
        cached.put("block", block)
        months = BlockMonths(cached, block, "block")
        chosen = selection.select(block.paths, filters.path_bounds, filters.source, filters.selected_traffic)
        for index, part in enumerate(block.parts):
            expected = np.zeros((len(TRAFFIC), DAYS), np.int64)
            for row in stored:
                if row["ts"].date().isoformat() in part.days and reference.is_counted(row, scope):
                    expected[TRAFFIC.index(row["traffic"]), row["ts"].day - 1] += 1
            assert months.by_day(chosen, filters.by_hit, policy, index).tolist() == expected.tolist()


def test_second_range_that_cuts_a_month_reads_the_whole_month(tmp_path: Path) -> None:
    stored = [view(ts=datetime(2026, 9, day, tzinfo=UTC)) for day in (1, 2, 15, 15, 30)]
    files = [File("", day, 0, 0) for day in sorted({row["ts"].date().isoformat() for row in stored})]
    covering = coverage(tmp_path, files, stored, set(range(1, 32)), set())
    block, cached = project.read(covering.parts, "site"), ResultCache(10_000_000)
    cached.put("block", block)
    months = BlockMonths(cached, block, "block")
    chosen = selection.select(block.paths, None, None, TRAFFIC)
    for first, is_whole in ((2, False), (16, True), (3, True)):
        sums = [np.zeros(chosen.width, block.dtype) for _ in TRAFFIC]
        span = Span(date(2026, 9, first), date(2026, 10, 1), "all")
        months.add(sums, chosen, Filters(), span)
        assert sum(each.sum() for each in sums) == sum(row["ts"].day >= first for row in stored)
        assert (cached.get(("month", block, 0)) is not None) == is_whole
