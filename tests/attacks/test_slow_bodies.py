"""Posts whose bodies arrive byte by byte take no connections from others."""

from collections.abc import Callable

from tests.attacks import slow_bodies, unread
from tests.processes.running import Running


def test_requests_are_answered_beside_more_slow_posts_than_the_service_has_connections(
    start: Callable[..., Running],
) -> None:
    service = start(**slow_bodies.MANY_ADDRESSES)
    unread.limit_files(service, 512)  # of which 256 may be connections
    answered, mib = slow_bodies.beside(service, 300)
    assert answered == 200
    assert mib < 50
