"""A deleted project is refused by its internal id, for good, and writers can see that the list has grown."""

from contextlib import closing

from warehouse.hotlog import batches, refusals
from warehouse.hotlog.connection import HotConnection, HotLogPlace


def test_new_hot_log_refuses_no_project(hot: HotConnection) -> None:
    assert (refusals.last(hot), refusals.internal_ids(hot)) == (0, frozenset())
    assert not refusals.has(hot, "")


def test_refused_project_is_refused_by_all_connections(hot: HotConnection, hot_log: HotLogPlace) -> None:
    refusals.add(hot, "first")
    with closing(batches.connect(hot_log)) as other:
        assert refusals.has(other, "first")
        assert not refusals.has(other, "firs")
        assert refusals.internal_ids(other) == {"first"}


def test_each_refusal_has_a_higher_id_and_a_repeated_one_adds_nothing(hot: HotConnection) -> None:
    refusals.add(hot, "first")
    first = refusals.last(hot)
    refusals.add(hot, "first")
    assert refusals.last(hot) == first
    refusals.add(hot, "second")
    assert refusals.last(hot) > first
    assert refusals.internal_ids(hot) == {"first", "second"}
