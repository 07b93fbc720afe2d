"""A network has a majority only if it has more than half of all views, with several user agents."""

import random

import pytest

from ingest.visitors.majority import SAMPLED, USER_AGENTS_MIN, VIEWS_MIN, Majority


def blocks(network: int, number: int, user_agents: int = USER_AGENTS_MIN) -> list[bytes]:
    return [network.to_bytes(8) + (each % user_agents).to_bytes(8) for each in range(number)]


READERS = [block for network in range(1, VIEWS_MIN + 1) for block in blocks(network, 1)]


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        (blocks(0, VIEWS_MIN), True), (blocks(0, VIEWS_MIN - 1), False),
        (blocks(0, VIEWS_MIN, USER_AGENTS_MIN - 1), False), (READERS, False),
        (READERS + blocks(0, VIEWS_MIN), False), (blocks(0, 3 * VIEWS_MIN) + READERS, True),
    ],
)  # fmt: skip
def test_network_with_most_views_and_several_user_agents_is_found(views: list[bytes], expected: bool) -> None:
    majority = Majority()
    assert [majority.add(each) for each in views][-1] is expected


def test_majority_is_found_in_any_order_and_only_the_first_views_of_a_post_count() -> None:
    for seed in range(20):
        views = blocks(0, 300) + READERS
        random.Random(seed).shuffle(views)
        majority = Majority()
        for each in views:
            answer = majority.add(each)
        assert answer
    assert not Majority().add(b"".join(READERS * 3 + blocks(0, 3 * SAMPLED)))
