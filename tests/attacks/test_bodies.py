"""Neither large bodies, slow ones nor answers that nobody reads keep the service from other clients."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.attacks import bodies, slow_bodies, unread
from tests.processes.running import Running


@pytest.mark.long
def test_small_bodies_of_millions_of_rows_are_refused_and_take_little_memory(start: Callable[..., Running]) -> None:
    statuses, mib = bodies.empty_rows(start())
    assert statuses == {413}
    assert mib < 150


@pytest.mark.long
def test_unfinished_posts_take_no_more_than_the_budget_and_stop_no_small_post(start: Callable[..., Running]) -> None:
    status, mib = bodies.unfinished(start(), posts=20)
    assert status == 202
    assert mib < 140


@pytest.mark.long
def test_rows_of_25_kb_take_memory_by_their_bytes(start: Callable[..., Running]) -> None:
    assert bodies.long_rows(start(), posts=10) < 200  # 3,000 rows, 72 MB


@pytest.mark.long
def test_requests_are_answered_beside_more_slow_posts_than_the_service_has_connections(
    start: Callable[..., Running],
) -> None:
    service = start(**slow_bodies.MANY_ADDRESSES)
    unread.limit_files(service, 512)  # of which 256 may be connections
    answered, mib = slow_bodies.beside(service, 300)
    assert answered == 200
    assert mib < 50


@pytest.mark.long
def test_requests_are_answered_beside_more_unread_answers_than_the_service_has_connections(
    start: Callable[..., Running],
) -> None:
    service = start()
    unread.limit_files(service, 512)
    with ExitStack() as stack:
        unread.hold(service, stack, 250, pipelined=200)
        assert unread.answers(service, 100) >= 95
