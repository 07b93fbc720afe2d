"""A salt is one for all processes and nodes, and is destroyed two days after its day and its last use."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from ingest.visitors.majority import VIEWS_MIN
from ingest.visitors.salts import CACHED_S, LIFE_S, NO_SALTS, RETRY_S, WARNED_DAYS, Salts, delete_expired, open_salts
from ingest.visitors.visitor import SaltUnread
from warehouse.database.postgresql import PostgresqlConnection
from warehouse.database.url import libpq_url
from warehouse.folder import SALTS

DAY, DAY_S = 20_000, 86_400
NOON_S = (DAY + 0.5) * DAY_S


class Clock:
    now_s = NOON_S


@pytest.fixture
def opened(database_url: str, tmp_path: Path) -> Iterator[Callable[[], Salts]]:
    """Yield a function that opens the salts of one store, as another process or node does. Its clock is Clock."""
    Clock.now_s, salts = NOON_S, list[Salts]()

    def new() -> Salts:
        salts.append(open_salts(database_url, tmp_path, now=lambda: Clock.now_s))
        return salts[-1]

    yield new
    for each in salts:
        each.close()


def test_nodes_that_start_at_once_have_one_salt_for_a_project_and_day(opened: Callable[[], Salts]) -> None:
    with ThreadPoolExecutor(4) as threads:
        nodes = [*threads.map(lambda _: opened(), range(4))]
        salts = [*threads.map(lambda node: node.read("site", [DAY])[DAY], nodes)]
    others = [*nodes[0].read("site", [DAY - 1, DAY + 1]).values(), *nodes[1].read("other", [DAY]).values()]
    assert {len(salt) for salt in salts + others} == {32}
    assert (len({*salts}), len({*salts, *others})) == (1, 4)


def test_salt_lives_two_days_after_its_day_and_after_its_last_use(opened: Callable[[], Salts]) -> None:
    salts = opened()
    first = salts.read("site", [DAY])
    Clock.now_s = (DAY + 1) * DAY_S + LIFE_S - 1
    salts.delete_expired()
    assert opened().read("site", [DAY]) == first  # a late import, which agrees, and uses the salt again
    Clock.now_s += LIFE_S - 1
    salts.delete_expired()
    assert salts.read("site", [DAY]) == first
    Clock.now_s += LIFE_S
    assert opened().read("site", [DAY]) != first


def test_salt_is_in_memory_for_an_hour_and_its_use_is_recorded_then(opened: Callable[[], Salts]) -> None:
    salts = opened()
    with pytest.raises(SaltUnread):
        salts.cached("site", [DAY])
    [salt] = salts.of("site", [DAY]).values()
    assert salts.of("site", [DAY])[DAY] is salts.cached("site", [DAY])[DAY] is salt
    Clock.now_s += CACHED_S
    with pytest.raises(SaltUnread):
        salts.cached("site", [DAY])


def test_deletion_of_expired_salts_removes_them_from_the_memory_of_an_idle_service(
    opened: Callable[[], Salts], database_url: str, tmp_path: Path
) -> None:
    salts = opened()
    [salt] = salts.of("site", [DAY]).values()
    others = sys.getrefcount(salt)
    Clock.now_s += CACHED_S - 1
    delete_expired(database_url, tmp_path, datetime.fromtimestamp(Clock.now_s, UTC))
    assert sys.getrefcount(salt) == others
    Clock.now_s += 1
    delete_expired(database_url, tmp_path, datetime.fromtimestamp(Clock.now_s, UTC))
    assert sys.getrefcount(salt) == others - 1


def test_deletion_of_a_project_destroys_its_salts(opened: Callable[[], Salts]) -> None:
    salts = opened()
    before, other = salts.read("site", [DAY, DAY + 1]), salts.read("other", [DAY])
    salts.delete_project("site")
    assert not {*salts.read("site", [DAY, DAY + 1]).values()} & {*before.values()}
    assert salts.read("other", [DAY]) == other


def test_no_file_has_a_part_of_a_salt_that_was_deleted(tmp_path: Path) -> None:
    def parts() -> list[int]:
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        return [sum(salt[at : at + 6] in content for at in range(27)) for salt in known]

    with closing(open_salts("sqlite:///", tmp_path, now=lambda: NOON_S)) as salts:
        known = [*salts.read("site", range(DAY - 200, DAY)).values(), *salts.read("other", [DAY]).values()]
        assert parts() == [27] * 201
        salts.delete_project("site")  # of which some pages are split
        assert parts() == [0] * 200 + [27]
        assert [path.name for path in tmp_path.iterdir()] == [SALTS]


def test_postgresql_writes_salts_to_no_log_and_replaces_the_file_of_the_table(
    database_url: str, opened: Callable[[], Salts]
) -> None:
    if (server := libpq_url(database_url)) is None:
        return
    salts = opened()
    salts.read("site", [DAY])
    facts = "SELECT relpersistence, pg_relation_filenode(oid) FROM pg_class WHERE relname = 'visitor_salts'"
    with closing(PostgresqlConnection(server)) as connection:
        (kind, file) = connection.execute(facts).fetchone()
        salts.delete_project("site")
        assert (kind, connection.execute(facts).fetchone()[1] != file) == ("u", True)


@pytest.mark.parametrize("store", [lambda salts: salts.read("site", [DAY - 1]), Salts.close])
def test_source_most_of_whose_views_have_one_network_has_a_warning_for_a_week(
    opened: Callable[[], Salts], store: Callable[[Salts], object]
) -> None:
    salts, proxy = opened(), b"proxied."
    salt, other = salts.of("site", [DAY])[DAY], salts.of("other", [DAY])[DAY]
    for number in range(VIEWS_MIN // 2):
        block, reader = proxy + b"agent%03d" % (number % 7), b"net%05d" % number
        salt.of_blocks([block], "beacon")
        salt.visitors(reader + b"agent...", "beacon")
        salt.visitors(block, "log")
        other.visitors(block * 2 + reader + b"agent...", "log")
    assert [*opened().warnings("other")] == []  # stored with the next salt, or at the end
    store(salts)
    assert [*opened().warnings("site")] == []  # half of the beacons, and too few lines
    [warning] = opened().warnings("other")
    assert (warning.sources, warning.days, warning.day) == (("log",), 1, date(1970, 1, 1) + timedelta(DAY))
    Clock.now_s += (WARNED_DAYS + 1) * DAY_S
    assert [*opened().warnings("other")] == []


def test_service_that_counts_no_visitors_has_no_salts(tmp_path: Path) -> None:
    assert open_salts("sqlite:///", tmp_path, is_on=False) is NO_SALTS
    assert (NO_SALTS.of("site", [DAY]), NO_SALTS.cached("site", [DAY]), NO_SALTS.read("site", [DAY])) == ({}, {}, {})
    assert not [*tmp_path.iterdir()]


def test_damaged_file_is_created_again(tmp_path: Path) -> None:
    (tmp_path / SALTS).write_bytes(b"no database" * 1_000)
    with closing(open_salts("sqlite:///control.sqlite", tmp_path)) as salts:
        assert salts.of("site", [DAY])
    assert (tmp_path / SALTS).stat().st_mode & 0o077 == 0


def test_locked_file_leaves_visitors_unknown_for_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.visitors.salts.WAIT_S", 0.01)
    Clock.now_s = NOON_S
    with closing(open_salts("sqlite:///control.sqlite", tmp_path, now=lambda: Clock.now_s)) as salts:
        with closing(sqlite3.connect(tmp_path / SALTS, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert salts.of("site", [DAY]) == {}
            assert salts.of("site", [DAY]) == salts.cached("site", [DAY]) == {}  # without another wait
        Clock.now_s += RETRY_S
        assert (read := salts.of("site", [DAY])).keys() == {DAY}
        assert salts.of("site", [DAY]) == read


def test_days_of_a_post_are_read_together(tmp_path: Path) -> None:
    with closing(open_salts("sqlite:///control.sqlite", tmp_path)) as salts:
        read = salts.of("site", range(DAY, DAY + 3_000))
        assert [*read] == [*range(DAY, DAY + 3_000)]
        assert salts.cached("site", read) == read
