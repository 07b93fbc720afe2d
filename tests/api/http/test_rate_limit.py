"""The limit on beacons per address: a sliding window over all processes, without stored addresses."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.http.rate_limit import WINDOW_S, RateLimit

SECRET = 32 * b"s"
NOW_S = 1_790_000_000.0
ADDRESS = "192.0.2.17"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "limits.sqlite"


@pytest.fixture
def limit(file: Path) -> Iterator[RateLimit]:
    limit = RateLimit(file, 3, SECRET)
    yield limit
    limit.close()


def test_uses_above_the_limit_are_rejected_with_a_delay(limit: RateLimit) -> None:
    assert [limit.use(ADDRESS, NOW_S + second) for second in (0, 10, 20)] == [None] * 3
    assert limit.use(ADDRESS, NOW_S + 20) is not None


def test_each_address_has_its_own_limit(limit: RateLimit) -> None:
    for address in (ADDRESS, "192.0.2.18", "2001:db8::1", ""):
        assert [limit.use(address, NOW_S) for _ in range(3)] == [None] * 3
        assert limit.use(address, NOW_S) is not None


def test_mapped_ipv4_address_is_the_client_of_its_ipv4_address(limit: RateLimit) -> None:
    """A socket that listens on `::` has IPv4 addresses in this form, all of which are in one /64 network."""
    assert [limit.use("::ffff:192.0.2.1", NOW_S) for _ in range(3)] == [None] * 3
    assert limit.use("::ffff:192.0.2.2", NOW_S) is None
    assert limit.use("192.0.2.1", NOW_S) is not None


def test_rejected_use_is_not_counted(limit: RateLimit) -> None:
    assert [limit.use(ADDRESS, NOW_S) for _ in range(3)] == [None] * 3
    for second in range(WINDOW_S):
        assert limit.use(ADDRESS, NOW_S + second) is not None
    assert limit.use(ADDRESS, NOW_S + WINDOW_S + 1) is None


def test_window_slides(limit: RateLimit) -> None:
    for second in (0, 20, 40):
        assert limit.use(ADDRESS, NOW_S + second) is None
    assert limit.use(ADDRESS, NOW_S + 59) is not None
    for second in (61, 81, 101):  # each a second after one of the first three has left the window
        assert limit.use(ADDRESS, NOW_S + second) is None
        assert limit.use(ADDRESS, NOW_S + second + 1) is not None


def test_processes_share_their_counts(file: Path, limit: RateLimit) -> None:
    other = RateLimit(file, 3, SECRET)
    assert [each.use(ADDRESS, NOW_S) for each in (limit, other, limit)] == [None] * 3
    assert other.use(ADDRESS, NOW_S) is not None
    other.close()
    again = RateLimit(file, 3, SECRET)
    assert again.use(ADDRESS, NOW_S + 1) is not None
    again.close()


def use_at_last(limit: RateLimit) -> int | None:
    while True:
        with suppress(sqlite3.OperationalError):
            return limit.use(ADDRESS, NOW_S)


def test_use_does_not_wait_for_another_process(file: Path, limit: RateLimit) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            limit.use(ADDRESS, NOW_S)
        assert time.monotonic() - began < 1
        other.execute("ROLLBACK")
    assert [limit.use(ADDRESS, NOW_S) for _ in range(3)] == [None] * 3


def test_concurrent_processes_accept_no_more_uses_than_the_limit(file: Path) -> None:
    passed: list[bool] = []

    def work() -> None:
        limit = RateLimit(file, 50, SECRET)
        passed.extend(use_at_last(limit) is None for _ in range(40))
        limit.close()

    RateLimit(file, 50, SECRET).close()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(passed), sum(passed)) == (160, 50)


def test_files_have_no_address(file: Path, limit: RateLimit) -> None:
    for number in range(200):
        limit.use(f"198.51.100.{number}", NOW_S)
        limit.use(f"2001:db8::{number:x}", NOW_S)
    stored = b"".join(each.read_bytes() for each in file.parent.iterdir())
    assert len(stored) > 200 * 16
    assert b"198.51" not in stored
    assert b"2001:db8" not in stored
    assert bytes([198, 51, 100]) not in stored


def test_file_does_not_grow_over_time(file: Path, limit: RateLimit) -> None:
    for minute in range(5):
        for number in range(1_000):
            limit.use(f"{number}", NOW_S + minute * (WINDOW_S + 1))
        if minute == 1:
            early = file.stat().st_size + file.with_name(file.name + "-wal").stat().st_size
    assert file.stat().st_size + file.with_name(file.name + "-wal").stat().st_size < 2 * early


steps = st.lists(st.floats(0, 40, allow_nan=False), min_size=1, max_size=40)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(steps, st.integers(1, 4))
def test_no_window_of_sixty_seconds_has_more_uses_than_the_limit(waits: list[float], most: int) -> None:
    limit, now_s = RateLimit(Path(":memory:"), most, SECRET), NOW_S
    passed = []
    for wait_s in waits:
        now_s += wait_s
        if limit.use(ADDRESS, now_s) is None:
            passed.append(now_s)
    limit.close()
    assert all(last - first >= WINDOW_S for first, last in zip(passed, passed[most:], strict=False))


@settings(deadline=None, derandomize=True, max_examples=100)
@given(steps, st.integers(1, 4))
def test_use_after_the_returned_delay_is_accepted(waits: list[float], most: int) -> None:
    limit, now_s = RateLimit(Path(":memory:"), most, SECRET), NOW_S
    for wait_s in waits:
        now_s += wait_s
        retry_after_s = limit.use(ADDRESS, now_s)
        if retry_after_s is not None:
            assert 1 <= retry_after_s <= WINDOW_S + 1
            now_s += retry_after_s
            assert limit.use(ADDRESS, now_s) is None
    limit.close()


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.floats(21, 90, allow_nan=False), min_size=1, max_size=30))
def test_uses_within_the_limit_are_never_rejected(waits: list[float]) -> None:
    limit, now_s = RateLimit(Path(":memory:"), 3, SECRET), NOW_S
    for wait_s in waits:  # three in more than 60 seconds
        now_s += wait_s
        assert limit.use(ADDRESS, now_s) is None
    limit.close()
