"""Views of any range of days, read from rollups, are those of a plain count."""

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.blocks import project
from warehouse.blocks.project import ProjectBlock

from tests import temporary
from tests.rounds import rounds
from tests.warehouse.blocks.rollup_files import Counted, write
from warehouse.rollups.coverage import Part

PROJECTS = ["aaa", "site", "zzz"]
FIRST_DAY, MONTHS = date(2025, 12, 1), ["2025-12", "2026-01", "2026-03"]
days = st.builds(
    lambda month, day: date.fromisoformat(f"{month}-{day:02d}"),
    st.sampled_from(MONTHS),
    st.sampled_from([1, 2, 15, 31]),
)
counted_views: st.SearchStrategy[Counted] = st.dictionaries(
    st.tuples(
        st.sampled_from(PROJECTS), days, st.sampled_from(["/", "/a", "/b", "/é"]), st.integers(0, 2), st.integers(0, 2)
    ),
    st.sampled_from([1, 2, 300, 70_000]),
)
bounds = st.integers(-40, 160).map(lambda number: FIRST_DAY + timedelta(days=number))


def answered(block: ProjectBlock, ids: slice, start: date, end: date) -> dict[tuple[str, int, int], int]:
    """Return the views that are not zero, by path, source and traffic."""
    months = [block.month(index) for index in range(len(block.parts))]
    some_days = {index: block.some_days(index, days) for index, days in block.cut_months((start, end)).items()}
    paths = block.paths.take(np.arange(ids.start, ids.stop)).to_pylist()
    views = {}
    for key in [(source, traffic) for source in range(3) for traffic in range(3)]:
        sums = np.zeros(len(paths), block.dtype)
        block.add(sums, key, ids, (start, end), months.__getitem__)
        of_some_days = np.zeros(len(paths), block.dtype)
        block.add(of_some_days, key, ids, (start, end), some_days.__getitem__)
        assert of_some_days.tolist() == sums.tolist()
        views |= {(path, *key): number for path, number in zip(paths, sums.tolist(), strict=True) if number}
    return views


def expected(counted: Counted, start: date, end: date, invalid: Iterable[date]) -> Counter[tuple[str, int, int]]:
    views = Counter[tuple[str, int, int]]()
    for (name, day, *key), number in counted.items():
        if name == "site" and start <= day < end and day not in invalid:
            views[tuple(key)] += number  # type: ignore[index]
    return views


@pytest.mark.long
@settings(max_examples=rounds(150))
@given(counted_views, st.sets(days, max_size=2), st.lists(st.tuples(bounds, bounds), min_size=1, max_size=8))
def test_views_of_a_range_are_the_sum_of_its_valid_days(
    counted: Counted, invalid: set[date], ranges: list[tuple[date, date]]
) -> None:
    with temporary.folder() as folder:
        rollups = [write(Path(folder) / month, month, counted) for month in MONTHS]
        parts = []
        for rollup in rollups:
            valid = frozenset(day for day in rollup.files if date.fromisoformat(day) not in invalid)
            parts.append(Part(rollup, valid, len(valid) == len(rollup.files)))
        block = project.read(parts, "site")
        for start, end in map(sorted, ranges):
            everything = slice(0, block.paths.sorted_count)
            assert answered(block, everything, start, end) == expected(counted, start, end, invalid)
        within = block.paths.sorted_between(("/a", "/b"))
        chosen = {key: number for key, number in answered(block, everything, start, end).items() if key[0] == "/a"}
        assert answered(block, within, start, end) == chosen


def parts_of(folder: Path, counted: Counted, invalid: set[date]) -> list[Part]:
    """Write the rollups of all months, and return those that have a valid day."""
    parts = []
    for rollup in [write(folder / month, month, counted) for month in MONTHS]:
        valid = frozenset(day for day in rollup.files if date.fromisoformat(day) not in invalid)
        parts.append(Part(rollup, valid, len(valid) == len(rollup.files)))
    return [part for part in parts if part.days]


@settings(max_examples=rounds(100))
@given(
    counted_views,
    counted_views,
    st.sets(days, max_size=2),
    st.lists(st.sampled_from(["first", "second", "none"]), min_size=3, max_size=3),
)
def test_block_that_reuses_months_equals_one_that_reads_all(
    first: Counted, second: Counted, invalid: set[date], choice: list[str]
) -> None:
    """Replace or remove some months of a block, and compare the next block with one that is read without it."""
    with temporary.folder() as folder:
        before = parts_of(Path(folder) / "first", first, set())
        by_month = {"first": before, "second": parts_of(Path(folder) / "second", second, invalid), "none": []}
        chosen = [
            part
            for month, name in zip(MONTHS, choice, strict=True)
            for part in by_month[name]
            if part.rollup.month == month
        ]
        groups = {
            "merged_bytes": 2,
            "build_bytes": 100,
        }  # smaller than the rollups, which are then read in several groups
        block = project.read(chosen, "site", project.read(before, "site", **groups), **groups)
        plain = project.read(chosen, "site")
        everything = slice(0, plain.paths.sorted_count)
        assert block.paths.take(np.arange(block.paths.sorted_count)) == plain.paths.take(np.arange(everything.stop))
        assert block.dtype == plain.dtype
        for start, end in [(FIRST_DAY, date(2026, 4, 1)), (date(2025, 12, 2), date(2026, 3, 15))]:
            assert answered(block, everything, start, end) == answered(plain, everything, start, end)


def test_many_views_are_added_in_64_bits(tmp_path: Path) -> None:
    views = 2_000_000_000
    counted = {("site", day, "/a", 0, 0): views for day in (date(2025, 12, 1), date(2026, 1, 31), date(2026, 3, 1))}
    parts = [
        Part(rollup, frozenset(rollup.files), True) for m in MONTHS for rollup in [write(tmp_path / m, m, counted)]
    ]
    block = project.read(parts, "site")
    assert answered(block, slice(0, 1), date(2025, 1, 1), date(2027, 1, 1)) == {("/a", 0, 0): 3 * views}


def test_project_without_rollups_has_no_paths() -> None:
    block = project.read([], "site")
    assert (block.paths.sorted_count, answered(block, slice(0, 0), date(1, 1, 1), date(9999, 12, 31))) == (0, {})
