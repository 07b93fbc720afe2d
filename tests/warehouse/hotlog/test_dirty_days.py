"""Dirty days are listed until they are cleared, and two equal reads mean that nothing changed in between."""

from contextlib import closing

import pytest

from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection, HotLogPlace
from warehouse.hotlog.dirty_days import DirtyDays, clear_dirty, list_dirty, mark_dirty, read_dirty
from warehouse.transaction import transaction

FIRST, SECOND, THIRD = "2026-08-31", "2026-09-01", "2026-09-15"


def test_dirty_days_are_listed_once_in_ascending_order_by_any_connection(
    hot: HotConnection, hot_log: HotLogPlace
) -> None:
    mark_dirty(hot, [THIRD, FIRST, THIRD])
    mark_dirty(hot, [SECOND, FIRST])
    with closing(batches.connect(hot_log)) as other:
        assert list_dirty(other) == [FIRST, SECOND, THIRD]


def test_only_the_given_days_are_cleared(hot: HotConnection) -> None:
    mark_dirty(hot, [FIRST, SECOND, THIRD])
    clear_dirty(hot, [FIRST, THIRD, "2026-12-31"])
    assert list_dirty(hot) == [SECOND]


def test_no_day_is_dirty_in_a_new_hot_log(hot: HotConnection) -> None:
    assert list_dirty(hot) == []
    assert read_dirty(hot) == DirtyDays(frozenset(), 0)


def test_day_that_was_cleared_and_marked_again_differs_from_one_that_stayed_dirty(
    hot: HotConnection,
) -> None:
    mark_dirty(hot, [FIRST, SECOND])
    before = read_dirty(hot)
    assert read_dirty(hot) == before
    clear_dirty(hot, [SECOND])
    mark_dirty(hot, [SECOND])
    after = read_dirty(hot)
    assert after.days == before.days == {FIRST, SECOND}
    assert after != before


def test_newest_mark_outlives_the_days_it_marked(hot: HotConnection) -> None:
    mark_dirty(hot, [FIRST])
    last_mark = read_dirty(hot).last_mark
    clear_dirty(hot, [FIRST])
    assert read_dirty(hot) == DirtyDays(frozenset(), last_mark)


def test_days_marked_in_a_transaction_that_rolls_back_are_not_dirty(hot: HotConnection) -> None:
    with pytest.raises(InterruptedError):
        mark_and_fail(hot)
    assert list_dirty(hot) == []


def mark_and_fail(hot: HotConnection) -> None:
    """Fail after marking a day, in one transaction."""
    with transaction(hot):
        mark_dirty(hot, [FIRST])
        assert list_dirty(hot) == [FIRST]
        raise InterruptedError
