"""The cache of keys, projects and source policies."""

from api.cache import TTL_S, Cache


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_value_is_returned_until_its_ttl_ends_whether_or_not_it_is_read() -> None:
    clock = Clock()
    cache: Cache[int] = Cache(now_s=clock)
    assert cache.get("a") is None
    cache.put("a", 1)
    clock.now_s += TTL_S * 0.9
    assert cache.get("a") == 1
    clock.now_s += TTL_S * 0.2
    assert cache.get("a") is None
    cache.put("a", 2)
    assert cache.get("a") == 2


def test_revoked_key_works_for_less_than_five_seconds() -> None:
    assert TTL_S < 5
