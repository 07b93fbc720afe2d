"""A request cannot make the service store a large head, or use a field after its body."""

from collections.abc import Callable

import pytest

from tests.attacks import heads
from tests.processes.running import Running

LIMIT = 3


@pytest.mark.parametrize(
    ("attack", "status"), [(heads.large_field, 431), (heads.many_fields, 431), (heads.large_trailer, 0)]
)
def test_large_head_takes_no_memory(
    start: Callable[..., Running], attack: Callable[[Running], tuple[int, float]], status: int
) -> None:
    answered, mib = attack(start())
    assert answered == status
    assert mib < heads.MEBIBYTES / 3


def test_field_after_a_body_does_not_choose_the_address_of_the_client(start: Callable[..., Running]) -> None:
    service = start(READERSHIP_BEACONS_PER_MINUTE=str(LIMIT))
    assert heads.beacons(service, 2 * LIMIT) == LIMIT
