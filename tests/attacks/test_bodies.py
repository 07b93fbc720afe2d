"""Bodies take no more memory than their budget, and small posts are accepted beside large ones."""

from collections.abc import Callable

from tests.attacks import bodies
from tests.processes.running import Running


def test_small_bodies_of_millions_of_rows_are_refused_and_take_little_memory(start: Callable[..., Running]) -> None:
    statuses, mib = bodies.empty_rows(start())
    assert statuses == {413}
    assert mib < 150


def test_unfinished_posts_take_no_more_than_the_budget_and_stop_no_small_post(start: Callable[..., Running]) -> None:
    status, mib = bodies.unfinished(start(), posts=20)
    assert status == 202
    assert mib < 140
