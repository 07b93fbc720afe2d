"""Paths have the ids of their byte order, and paths that come later get the next ones."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse.blocks.paths import PathIds

texts = st.text(st.sampled_from("/ab~é\U0001f600￿"), max_size=4)
path_sets = st.sets(texts, max_size=12)


def array(paths: Iterable[str]) -> pa.Array:
    return pa.array(list(paths), pa.string())


def in_order(paths: set[str]) -> list[str]:
    return sorted(paths, key=str.encode)


def ids_of(known: set[str], later: set[str]) -> PathIds:
    ids = PathIds(array(in_order(known)))
    ids.add(array(later))
    return ids


@settings(max_examples=200)
@given(path_sets, path_sets, path_sets)
def test_path_has_one_id(known: set[str], later: set[str], asked: set[str]) -> None:
    ids = ids_of(known, later)
    asked_for = ids.add(array(asked))
    assert ids.take(asked_for).to_pylist() == list(asked)
    assert ids.add(array(asked)).tolist() == asked_for.tolist()
    assert ids.add(array(in_order(known))).tolist() == list(range(len(known)))
    assert len(known | later | asked) == ids.sorted_count + ids.later_count


@pytest.mark.parametrize("count", [3, 30], ids=["binary search", "hash table"])
def test_few_and_many_paths_are_found_among_many(count: int) -> None:
    ids = PathIds(array(f"/{number:05d}" for number in range(0, 10_000, 2)))
    asked = [f"/{number:05d}" for number in range(count)]
    expected = [number // 2 if number % 2 == 0 else 5_000 + number // 2 for number in range(count)]
    assert ids.add(array(asked)).tolist() == expected


@settings(max_examples=200)
@given(path_sets, path_sets)
def test_positions_are_in_byte_order(known: set[str], later: set[str]) -> None:
    ids, everything = ids_of(known, later), list(known | later)
    positions = ids.positions(ids.add(array(everything))).tolist()
    assert sorted(everything, key=lambda path: positions[everything.index(path)]) == in_order(known | later)
    assert sorted(positions) == list(range(len(everything)))


@settings(max_examples=200)
@given(path_sets, path_sets, texts, texts | st.none())
def test_bounds_choose_the_paths_between_them(known: set[str], later: set[str], first: str, after: str | None) -> None:
    ids = ids_of(known, later)
    within = ids.sorted_between((first, after))
    chosen = in_order(known)[within]
    assert chosen == [
        path for path in in_order(known) if first.encode() <= path.encode() and (after is None or path < after)
    ]
    added = ids.take(np.arange(ids.sorted_count, ids.sorted_count + ids.later_count)).to_pylist()
    assert set(added) == later - known
    is_within = [first.encode() <= path.encode() and (after is None or path < after) for path in added]
    assert ids.is_later_between((first, after)).tolist() == is_within
