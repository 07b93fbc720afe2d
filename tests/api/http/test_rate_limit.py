"""The limit on beacons per address: a sliding window over all processes, without stored addresses."""

import asyncio
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.client_address import hashed_address
from api.http.rate_limit import WINDOW_S, WINDOW_US, RateLimit
from ingest.errors import Overloaded
from ingest.hotlog import beacon_shares
from ingest.hotlog.beacon_shares import BeaconShares, Share
from tests.processes.waiting import until
from tests.stores.outage import way_to
from tests.stores.postgresql import LOCKS, new_database
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.hotlog import batches
from warehouse.hotlog.connection import Server, server_of

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


def test_each_address_has_its_own_limit(limit: RateLimit) -> None:
    for address in (ADDRESS, "192.0.2.18", "2001:db8::1", ""):
        assert [limit.use(address, NOW_S) for _ in range(3)] == [None] * 3
        assert limit.use(address, NOW_S) is not None


def test_network_has_four_times_the_limit_of_an_address(limit: RateLimit) -> None:
    def use(number: int, second: float = 0) -> bool:
        return limit.use_together(f"2001:db8:0:{number:x}::1", "site", NOW_S + second) is None

    assert [use(number) for number in range(13)] == [True] * 12 + [False]  # in 2001:db8::/56
    assert use(0x100), "another network"
    assert not use(0xFF, 59.9)
    assert use(0xFF, 61.1)
    assert limit.use("2001:db8::1", NOW_S) is None
    assert limit.use_together("::ffff:192.0.2.1", "site", NOW_S) is None
    assert [limit.use("192.0.2.1", NOW_S) for _ in range(3)] == [None] * 3


def test_project_has_a_hundred_times_the_limit_of_an_address(limit: RateLimit) -> None:
    waits = [limit.use_together(f"192.0.2.{number % 250}", "site", NOW_S + number / 10) for number in range(310)]
    assert waits[:300] == [None] * 300
    assert all(waits[300:])
    assert limit.use_together(ADDRESS, "another", NOW_S + 31) is None
    assert limit.use_together(ADDRESS, "site", NOW_S + 61.1) is None


def test_use_above_the_limit_of_an_address_does_not_count_for_the_project(limit: RateLimit) -> None:
    for _ in range(400):
        asyncio.run(limit.count(ADDRESS, "site"))
    assert asyncio.run(limit.count("192.0.2.18", "site")) is None


def use_at_last(limit: RateLimit) -> int | None:
    def waits() -> tuple[int | None] | None:
        with suppress(sqlite3.OperationalError):
            return (limit.use(ADDRESS, NOW_S),)
        return None

    return until(waits)[0]


def test_use_does_not_wait_for_another_process(file: Path, limit: RateLimit) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            limit.use(ADDRESS, NOW_S)
        assert limit._connection.execute("PRAGMA busy_timeout").fetchone() == (0,)
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


@pytest.fixture(scope="module")
def server(postgresql: str) -> Server:
    """Return a hot log in PostgreSQL. Each test counts an address of its own."""
    server = server_of(new_database(postgresql))
    assert server is not None
    with closing(batches.connect(server)) as hot:
        beacon_shares.create(hot)
        beacon_shares.create(hot)
    return server


class Nodes:
    """Limits of several nodes with one database, each with a file of its own, and a clock."""

    def __init__(self, server: Server, uses_max: int, number: int, stack: ExitStack) -> None:
        self.now_s = NOW_S
        shares = [stack.enter_context(closing(BeaconShares(server, uses_max, WINDOW_US))) for _ in range(number)]
        limits = [RateLimit(Path(":memory:"), uses_max, SECRET, each, lambda: self.now_s) for each in shares]
        self.limits = [stack.enter_context(closing(each)) for each in limits]

    def count(self, uses: Iterable[int], address: str) -> list[int | None]:
        """Count uses of an address, one after the other, each on the node with the number."""

        async def work() -> list[int | None]:
            return [await self.limits[node].count(address, "site") for node in uses]

        return asyncio.run(work())


@contextmanager
def nodes(server: Server, uses_max: int, number: int = 2) -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(server, uses_max, number, stack)


def test_nodes_share_the_limit_within_a_share(server: Server) -> None:
    with nodes(server, 100) as both:
        answers = both.count([0, 1] * 100, "192.0.2.1")
        assert 98 <= answers.count(None) <= 102, "two nodes, and a share has two beacons"
        assert both.count([1], "192.0.2.2") == [None]


def test_one_node_with_postgresql_accepts_exactly_the_limit(server: Server) -> None:
    for uses_max in (1, 3, 120):
        with nodes(server, uses_max, number=1) as one:
            answers = one.count([0] * (uses_max + 5), f"198.51.100.{uses_max}")
        assert [each is None for each in answers] == [True] * uses_max + [False] * 5


def test_share_that_is_used_just_before_it_expires_is_free_for_another_node(server: Server) -> None:
    address = "192.0.2.6"
    with nodes(server, 100) as both:
        assert both.count([0, 0], address) == [None, None]
        both.now_s += 0.1
        assert both.count([0], address) == [None], "the first of a share of two beacons"
        both.now_s += WINDOW_S - 0.05
        of_first = both.count([0] * 3, address)
        both.now_s += 0.1
        of_second = both.count([1] * 105, address)
    assert (of_first.count(None), of_second.count(None)) == (3, 100)


def test_shares_are_free_again_after_a_minute(server: Server) -> None:
    with nodes(server, 10) as both:
        for _ in range(3):
            assert both.count([0] * 10, "192.0.2.3") == [None] * 10
            own_share, retry_after_s = both.count([1, 1], "192.0.2.3")
            assert own_share is None
            assert retry_after_s is not None
            both.now_s += retry_after_s + 1


def test_exhausted_address_is_refused_without_postgresql(postgresql: str) -> None:
    with way_to(postgresql) as (way, url, direct_url):
        server, direct = server_of(url), server_of(direct_url)
        assert server is not None
        assert direct is not None
        with closing(batches.connect(direct)) as hot:
            beacon_shares.create(hot)
        with nodes(server, 2, number=1) as one:
            assert [each is None for each in one.count([0] * 3, ADDRESS)] == [True, True, False]
            way.cut()
            assert one.count([0], ADDRESS) != [None]
            assert one.count([0], "192.0.2.9") == [None]
            with pytest.raises(Overloaded, match="cannot be counted"):
                one.count([0], "192.0.2.9")


def test_concurrent_beacons_of_a_node_use_the_same_share(server: Server) -> None:
    async def work(limit: RateLimit) -> list[int | None]:
        return await asyncio.gather(*(limit.count("192.0.2.4", "site") for _ in range(12)))

    with nodes(server, 100, number=1) as one, closing(batches.connect(server)) as hot:
        assert asyncio.run(work(one.limits[0])) == [None] * 12
        client = hashed_address("192.0.2.4", SECRET)
        rows = hot.execute("SELECT beacons FROM beacon_shares WHERE client = %s", (client,)).fetchall()
    assert rows == [(10,)], "the first two are the node's own"


def test_share_that_another_node_is_taking_is_not_free(server: Server) -> None:
    client = hashed_address("192.0.2.5", SECRET)
    with (
        closing(BeaconShares(server, 100, WINDOW_US)) as shares,
        closing(batches.connect(server)) as other,
        ThreadPoolExecutor() as pool,
    ):
        other.execute("SELECT pg_advisory_lock(%s)", (beacon_shares.LOCK_KEY,))
        taken = pool.submit(shares.take, client, 1)
        until(lambda: other.execute(f"SELECT 1 {LOCKS} AND NOT granted").fetchone() is not None)
        other.execute("INSERT INTO beacon_shares VALUES (%s, 0, 98)", (client,))
        other.execute("SELECT pg_advisory_unlock(%s)", (beacon_shares.LOCK_KEY,))
        assert taken.result() == Share(0, WINDOW_US)


def test_database_has_no_address_and_forgets_the_hashes(server: Server) -> None:
    with nodes(server, 100) as both, closing(batches.connect(server)) as hot:
        both.count([0] * 30, "203.0.113.77")
        rows = hot.execute("SELECT client FROM beacon_shares").fetchall()
        assert (hashed_address("203.0.113.77", SECRET),) in rows
        both.now_s += 10 * WINDOW_S
        both.count([1] * 3, "203.0.113.78")
        assert hot.execute("SELECT client FROM beacon_shares").fetchall() == [(hashed_address("203.0.113.78", SECRET),)]


def test_expired_shares_are_found_by_an_index_and_deleted_in_parts(postgresql: str) -> None:
    server = server_of(new_database(postgresql))
    assert server is not None
    values = {"now_us": 10 * WINDOW_US, "window_us": WINDOW_US, "size": 2, "most": 98, "client": b"someone"}
    with closing(batches.connect(server)) as hot, closing(BeaconShares(server, 100, WINDOW_US)) as shares:
        assert isinstance(hot, PostgresqlConnection)
        # as an older release created it
        hot.execute(
            "CREATE UNLOGGED TABLE beacon_shares (client BYTEA, at_us BIGINT, beacons BIGINT NOT NULL,"
            " PRIMARY KEY (client, at_us))"
        )
        beacon_shares.create(hot)
        expired, early = 20_000, 3_000
        hot.execute("INSERT INTO beacon_shares SELECT n::text::bytea, n, 2 FROM generate_series(1, %s) n", (expired,))
        hot.execute(
            "INSERT INTO beacon_shares SELECT n::text::bytea, %s + n, 2 FROM generate_series(1, %s) n",
            (20 * WINDOW_US, early),
        )
        hot.execute("ANALYZE beacon_shares")
        plan = "\n".join(row[0] for row in hot.execute(f"EXPLAIN {beacon_shares.TAKE}", values).fetchall())
        assert "Seq Scan" not in plan
        assert beacon_shares.TIME_INDEX in plan
        assert shares.take(b"someone", 10 * WINDOW_US) == Share(2, 11 * WINDOW_US)
        left = hot.execute(
            "SELECT count(*) FILTER (WHERE at_us <= %s), count(*) FILTER (WHERE at_us > %s) FROM beacon_shares",
            (9 * WINDOW_US, 11 * WINDOW_US),
        ).fetchone()
        assert left == (expired - beacon_shares.DELETED_MAX, early - beacon_shares.DELETED_MAX)


bursts = st.lists(
    st.tuples(st.floats(0, 20, allow_nan=False), st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=25
)


@pytest.mark.long
@settings(max_examples=20)
@given(bursts, st.integers(1, 60) | st.just(100))
def test_no_window_has_more_than_the_limit_and_two_shares_of_each_other_node(
    server: Server, bursts: list[tuple[float, int, int]], most: int
) -> None:
    passed: list[float] = []
    address, share = secrets.token_hex(8), max(1, most // 50)
    with nodes(server, most, number=3) as three:
        for wait_s, node, uses in bursts:
            three.now_s += wait_s
            answers = three.count([node] * uses, address)
            passed += [three.now_s] * answers.count(None)
            if answers.count(None) < uses:
                assert sum(three.now_s - each < WINDOW_S for each in passed) >= most - 2 * share
    later = passed[most + 4 * share :]
    assert all(last - first >= WINDOW_S for first, last in zip(passed, later, strict=False))


steps = st.lists(st.floats(0, 40, allow_nan=False), min_size=1, max_size=40)


@pytest.mark.long
@settings(max_examples=100)
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


@settings(max_examples=100)
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


@settings(max_examples=100)
@given(st.lists(st.floats(21, 90, allow_nan=False), min_size=1, max_size=30))
def test_uses_within_the_limit_are_never_rejected(waits: list[float]) -> None:
    limit, now_s = RateLimit(Path(":memory:"), 3, SECRET), NOW_S
    for wait_s in waits:  # three in more than 60 seconds
        now_s += wait_s
        assert limit.use(ADDRESS, now_s) is None
    limit.close()
