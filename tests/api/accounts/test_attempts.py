"""Limits on sign-ins: per account and address, per address, and per account."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from api.accounts import attempts
from tests.api.accounts.conftest import NOW_S
from tests.stores import sql
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url

SECRET = b"s" * 32
MINUTE_S = 60


def begin(engine: Pool, now_s: int, address: str = "192.0.2.1", name: str = "Ada") -> int:
    return attempts.begin(engine, attempts.attempt_key(SECRET, address, name), now_s).wait_s


def sign_in(engine: Pool, now_s: int, address: str = "192.0.2.1", name: str = "Ada") -> None:
    key = attempts.attempt_key(SECRET, address, name)
    assert attempts.begin(engine, key, now_s).wait_s == 0
    attempts.passed(engine, key, now_s)


def test_failures_after_the_fifth_wait_twice_as_long_each_time(engine: Pool) -> None:
    assert [begin(engine, NOW_S) for _ in range(6)] == [0, 0, 0, 0, 0, 30]
    now_s = NOW_S
    for wait_s in (30, 60, 120, 240, 480, 900, 900):
        assert begin(engine, now_s + wait_s - 1) == 1
        now_s += wait_s
        assert begin(engine, now_s) == 0


def test_name_in_other_case_is_the_same_account(engine: Pool) -> None:
    for name in ("Ada", "ada", "ADA", " aDA", "adA "):
        assert begin(engine, NOW_S, name=name) == 0
    assert begin(engine, NOW_S, name="ada") == 30


def test_other_account_and_other_address_do_not_wait(engine: Pool) -> None:
    for _ in range(5):
        begin(engine, NOW_S)
    assert begin(engine, NOW_S) == 30
    assert begin(engine, NOW_S, name="Bob") == 0
    assert begin(engine, NOW_S, address="192.0.2.2") == 0


def test_right_password_ends_the_count_of_its_account_and_address(engine: Pool) -> None:
    for _ in range(4):
        begin(engine, NOW_S)
    sign_in(engine, NOW_S)
    assert [begin(engine, NOW_S) for _ in range(6)] == [0, 0, 0, 0, 0, 30]


def test_withdrawn_attempt_does_not_count(engine: Pool) -> None:
    key = attempts.attempt_key(SECRET, "192.0.2.1", "Ada")
    for _ in range(4):
        begin(engine, NOW_S)
    attempts.withdraw(engine, key, attempts.begin(engine, key, NOW_S))
    assert [begin(engine, NOW_S) for _ in range(2)] == [0, 30]


def test_failures_are_forgotten_after_an_hour(engine: Pool) -> None:
    for minute in range(5):
        begin(engine, NOW_S + minute * MINUTE_S)
    assert begin(engine, NOW_S + 4 * MINUTE_S + 29) == 1
    assert [begin(engine, NOW_S + 64 * MINUTE_S) for _ in range(6)] == [0, 0, 0, 0, 0, 30]


def test_address_that_tries_many_accounts_waits_until_a_failure_leaves_the_window(engine: Pool) -> None:
    for number in range(20):
        assert begin(engine, NOW_S + number, name=f"user{number}") == 0
    assert begin(engine, NOW_S + 20, name="another") == 15 * MINUTE_S - 20
    assert begin(engine, NOW_S + 20, address="192.0.2.2", name="another") == 0
    assert begin(engine, NOW_S + 15 * MINUTE_S, name="another") == 0
    assert begin(engine, NOW_S + 15 * MINUTE_S, name="one more") == 1


def test_address_with_a_right_password_for_one_account_has_the_same_limit_for_others(engine: Pool) -> None:
    for number in range(20):
        begin(engine, NOW_S, name=f"user{number}")
        if number < 19:
            sign_in(engine, NOW_S, name="attacker")
    assert begin(engine, NOW_S, name="attacker") == 15 * MINUTE_S


def test_addresses_of_one_ipv6_network_are_one_client(engine: Pool) -> None:
    for number in range(20):
        assert begin(engine, NOW_S, f"2001:db8::{number:x}", f"user{number}") == 0
    assert begin(engine, NOW_S, "2001:db8::ffff", "another") > 0
    assert begin(engine, NOW_S, "2001:db8:0:ff::1", "another") > 0
    assert begin(engine, NOW_S, "2001:db8:0:100::1", "another") == 0


def attack(engine: Pool, now_s: int) -> None:
    for number in range(20):
        assert begin(engine, now_s, f"192.0.2.{number}") == 0


def test_account_that_many_addresses_try_has_a_slow_lane_except_where_it_signed_in_before(engine: Pool) -> None:
    sign_in(engine, NOW_S, "198.51.100.1")
    attack(engine, NOW_S)
    assert begin(engine, NOW_S, "192.0.2.200") == 0
    assert begin(engine, NOW_S, "192.0.2.201") == 10
    assert begin(engine, NOW_S, "198.51.100.1") == 0
    assert begin(engine, NOW_S, "192.0.2.202", "Bob") == 0


@pytest.mark.long
def test_owner_signs_in_after_as_many_turns_as_strangers_have_addresses(engine: Pool) -> None:
    attack(engine, NOW_S)
    strangers = [f"198.51.100.{number}" for number in range(30)]
    assert [begin(engine, NOW_S, each) for each in strangers] == list(range(0, 300, 10))
    assert begin(engine, NOW_S, "203.0.113.7") == 300
    for second in range(0, 300, 10):  # they go on without a pause
        for each in strangers:
            begin(engine, NOW_S + second, each)
        assert begin(engine, NOW_S + second, "203.0.113.7") == 300 - second
    sign_in(engine, NOW_S + 300, "203.0.113.7")
    assert begin(engine, NOW_S + 300, "203.0.113.7") == 0, "and is exempt"


@pytest.mark.long
def test_strangers_guess_no_more_than_a_password_in_ten_seconds_with_any_number_of_addresses(engine: Pool) -> None:
    attack(engine, NOW_S)
    guesses = [
        begin(engine, NOW_S + second, f"198.51.{number}.1") == 0 for second in range(0, 240, 10) for number in range(50)
    ]
    assert sum(guesses) == 24
    assert begin(engine, NOW_S, "203.0.113.7") > 240


def test_unused_turn_expires_and_a_used_one_is_used_once(engine: Pool) -> None:
    attack(engine, NOW_S)
    for address in ("198.51.100.1", "198.51.100.2", "198.51.100.3"):
        begin(engine, NOW_S, address)
    assert begin(engine, NOW_S + 139, "198.51.100.3") == 0  # its turn was after 20 s
    assert begin(engine, NOW_S + 139, "198.51.100.3") == 0  # no other turn was given in the last ten seconds
    assert begin(engine, NOW_S + 139, "198.51.100.3") == 10
    assert begin(engine, NOW_S + 139, "198.51.100.2") == 20, "its turn expired"


@pytest.mark.long
def test_slow_lane_has_turns_for_an_hour(engine: Pool) -> None:
    attack(engine, NOW_S)
    waits = [begin(engine, NOW_S, f"198.51.{number}.1") for number in range(256)]
    waits += [begin(engine, NOW_S, f"203.0.{number}.1") for number in range(256)]
    assert waits == [min(10 * number, 3_610) for number in range(512)]
    assert sql.column(engine, "SELECT count(*) FROM sign_in_attempts") == [20 + 1 + 361]


def test_refused_attempt_does_not_prolong_the_wait(engine: Pool) -> None:
    for _ in range(5):
        begin(engine, NOW_S)
    assert [begin(engine, NOW_S + second) for second in range(31)] == [*range(30, 0, -1), 0]


def test_parallel_attempts_are_counted_before_their_passwords_are_checked(engine: Pool) -> None:
    with ThreadPoolExecutor(4) as pool:
        waits = list(pool.map(lambda _: begin(engine, NOW_S), range(12)))
    assert sorted(waits) == [0] * 5 + [30] * 7


def test_exemption_ends_thirty_days_after_the_last_sign_in(engine: Pool) -> None:
    for now_s, address in ((NOW_S, "198.51.100.1"), (NOW_S + 86_400, "198.51.100.2")):
        sign_in(engine, now_s, address)
    now_s = NOW_S + 30 * 86_400
    for number in range(20):
        begin(engine, now_s, f"192.0.2.{number}")
    assert begin(engine, now_s, "192.0.2.200") == 0
    assert begin(engine, now_s, "198.51.100.1") == 10
    assert begin(engine, now_s, "198.51.100.2") == 0


def test_neither_address_nor_name_is_in_the_database(tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    begin(engine, NOW_S, "198.51.100.77", "my password in the wrong field")
    engine.close()
    stored = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"198.51.100.77" not in stored
    assert b"my password" not in stored
    first, second = (attempts.attempt_key(secret, "198.51.100.77", "Ada") for secret in (SECRET, b"t" * 32))
    assert first.address != second.address
    assert first.account != second.account
