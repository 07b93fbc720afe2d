"""The cache returns the columns that each user agent has without it, classifies each once, and stays bounded."""

import random
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from ingest.classification.pool import Attributes, classify_many
from ingest.classification.user_agent_cache import Columns, UserAgentCache
from warehouse.schema import CLASSIFICATION

AGENTS = [
    "GPTBot/1.3", "", "curl/8.5", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7) Safari/604.1", "x" * 600,
]  # fmt: skip


class Recorder:
    """A classifier that records the user agents of its calls."""

    def __init__(self) -> None:
        self.user_agents: list[str] = []

    def __call__(self, user_agents: Sequence[str]) -> list[Attributes]:
        self.user_agents += user_agents
        return classify_many(user_agents)


def uncached(user_agents: Sequence[str]) -> list[Columns]:
    """Return the columns of each user agent by an independent route: by the names of the schema."""
    names = [name for name in CLASSIFICATION.names if name != "user_agent"]
    rows = [
        {"user_agent": user_agent, **dict(zip(names, attributes, strict=True))}
        for user_agent, attributes in zip(user_agents, classify_many(user_agents), strict=True)
    ]
    return [tuple(row[name] for name in CLASSIFICATION.names) for row in rows]


def random_bots(count: int, seed: int) -> list[str]:
    """Return user agents that share no browser: ua-parser takes the name of an unknown bot from the text."""
    chance = random.Random(seed)
    return [f"{chance.randbytes(12).hex()}bot/1.0" for _ in range(count)]


def test_cached_or_repeated_user_agent_is_classified_once() -> None:
    recorder = Recorder()
    cache = UserAgentCache(recorder)
    assert cache.columns_of_all(AGENTS) == uncached(AGENTS)
    more = ["curl/1", *AGENTS[::-1], "curl/2", "curl/1"]
    assert cache.columns_of_all(more) == uncached(more)
    assert cache.columns_of_all([]) == []
    last = ["curl/2", "curl/3", "curl/3"]
    assert [cache.columns(user_agent) for user_agent in last] == uncached(last)
    assert recorder.user_agents == [*AGENTS, "curl/1", "curl/2", "curl/3"]


def test_least_recently_used_user_agent_is_evicted() -> None:
    one = UserAgentCache()
    one.columns("curl/1")
    recorder = Recorder()
    cache = UserAgentCache(recorder, bytes_max=2 * one.nbytes)
    for user_agent in ("curl/1", "curl/2", "curl/1", "curl/3", "curl/1", "curl/2"):
        assert [cache.columns(user_agent)] == uncached([user_agent])
    assert recorder.user_agents == ["curl/1", "curl/2", "curl/3", "curl/2"]


def test_smaller_cache_has_fewer_user_agents() -> None:
    cache = UserAgentCache()
    some = [f"curl/{number}" for number in range(100)]
    cache.columns_of_all(some)
    before = cache.nbytes
    cache.resize(before // 2)
    assert cache.columns_of_all(some) == uncached(some)
    assert 0 < cache.nbytes <= before // 2


@pytest.mark.parametrize("bytes_max", [0, 1_000])
def test_user_agents_larger_than_the_cache_get_their_columns(bytes_max: int) -> None:
    cache = UserAgentCache(bytes_max=bytes_max)
    large = ["GPTBot " + 1_000 * "x", "curl " + 16_379 * "x"]
    assert cache.columns_of_all(large) == uncached(large)
    assert [cache.columns(user_agent) for user_agent in large] == uncached(large)
    assert cache.nbytes == 0


@pytest.mark.long
def test_memory_stays_bounded_when_no_two_user_agents_share_a_browser() -> None:
    bytes_max, count = 500_000, 500
    cache = UserAgentCache(bytes_max=bytes_max)
    sizes = []
    tracemalloc.start()
    try:
        for seed in range(36):
            cache.columns_of_all(random_bots(count, seed))
            assert cache.nbytes <= bytes_max
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    early, late = max(sizes[12:20]), max(sizes[28:])  # the parsers' own caches are full after 12 calls
    assert late - early < bytes_max / 2


def test_threads_get_the_right_columns_while_user_agents_are_evicted() -> None:
    cache = UserAgentCache(bytes_max=20_000)
    parts = [random_bots(40, seed % 6) for seed in range(24)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(cache.columns_of_all, parts))
    assert results == [uncached(part) for part in parts]


def test_threads_classify_no_user_agent_twice() -> None:
    recorder = Recorder()
    cache = UserAgentCache(recorder)
    some = [f"curl/{number}" for number in range(300)]
    parts = [some[first : first + 60] for first in range(0, 240, 5)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(cache.columns_of_all, parts))
    assert results == [uncached(part) for part in parts]
    assert len(recorder.user_agents) == len(set(recorder.user_agents))
