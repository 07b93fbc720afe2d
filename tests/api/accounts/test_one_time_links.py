"""One-time links: each works once, for 30 minutes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from api.accounts import one_time_links, passwords, sessions, users
from api.accounts.one_time_links import TTL_S, OneTimeLink
from api.accounts.users import User
from api.errors import UserNotFound
from tests.api.accounts.conftest import NOW_S, PASSWORD
from tests.stores import sql
from warehouse.database.pool import Pool


def first_owner_link(engine: Pool, now_s: int = NOW_S) -> str:
    token = one_time_links.create_for_first_owner(engine, now_s)
    assert token is not None
    return token


def is_valid(engine: Pool, token: str, now_s: int = NOW_S) -> bool:
    return one_time_links.find(engine, token, now_s) is not None


def test_link_is_shown_often_and_redeemed_once(engine: Pool, ada: User) -> None:
    token = one_time_links.create(engine, "password", ada.id, NOW_S)
    for _ in range(3):
        assert one_time_links.find(engine, token, NOW_S) == OneTimeLink("password", ada)
    assert one_time_links.redeem(engine, token, NOW_S) == OneTimeLink("password", ada)
    assert one_time_links.redeem(engine, token, NOW_S) is None
    assert not is_valid(engine, token)


def test_one_of_several_parallel_calls_redeems_a_link(engine: Pool, ada: User) -> None:
    token = one_time_links.create(engine, "sign_in", ada.id, NOW_S)
    with ThreadPoolExecutor(4) as pool:
        redeemed = list(pool.map(lambda _: one_time_links.redeem(engine, token, NOW_S), range(8)))
    assert [link for link in redeemed if link is not None] == [OneTimeLink("sign_in", ada)]


def test_link_ends_after_thirty_minutes(engine: Pool, ada: User) -> None:
    token = one_time_links.create(engine, "sign_in", ada.id, NOW_S)
    assert is_valid(engine, token, NOW_S + 30 * 60 - 1)
    assert not is_valid(engine, token, NOW_S + 30 * 60)
    assert one_time_links.redeem(engine, token, NOW_S + TTL_S) is None


def test_unknown_token_is_no_link(engine: Pool, ada: User) -> None:
    one_time_links.create(engine, "sign_in", ada.id, NOW_S)
    for token in ("", "x" * 43, "\udcff\x00"):
        assert one_time_links.find(engine, token, NOW_S) is None
        assert one_time_links.redeem(engine, token, NOW_S) is None


def test_new_link_replaces_the_earlier_link_of_the_same_user(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "viewer", None, NOW_S)
    of_bob = one_time_links.create(engine, "password", bob.id, NOW_S)
    first, second = (one_time_links.create(engine, "password", ada.id, NOW_S) for _ in range(2))
    assert [is_valid(engine, token) for token in (first, second, of_bob)] == [False, True, True]


def test_link_for_a_removed_user_is_not_created_or_valid(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "viewer", None, NOW_S)
    token = one_time_links.create(engine, "password", bob.id, NOW_S)
    users.remove(engine, bob.id)
    assert one_time_links.redeem(engine, token, NOW_S) is None
    with pytest.raises(UserNotFound):
        one_time_links.create(engine, "password", bob.id, NOW_S)


def test_links_of_a_user_end_with_the_password_and_with_sign_out_everywhere(engine: Pool, ada: User) -> None:
    for end in (
        lambda: users.set_password(engine, ada.id, passwords.hashed(PASSWORD)),
        lambda: sessions.end_all(engine, ada.id),
    ):
        token = one_time_links.create(engine, "sign_in", ada.id, NOW_S)
        end()
        assert one_time_links.redeem(engine, token, NOW_S) is None


def test_link_for_the_first_owner_exists_only_without_users(engine: Pool) -> None:
    first, second = first_owner_link(engine), first_owner_link(engine)
    assert not is_valid(engine, first)
    assert one_time_links.find(engine, second, NOW_S) == OneTimeLink("first_owner", None)
    users.create(engine, "Ada", "owner", None, NOW_S)
    assert one_time_links.redeem(engine, second, NOW_S) is None
    assert one_time_links.create_for_first_owner(engine, NOW_S) is None


def test_link_for_the_first_owner_is_redeemed_once(engine: Pool) -> None:
    token = first_owner_link(engine)
    assert one_time_links.redeem(engine, token, NOW_S) == OneTimeLink("first_owner", None)
    assert one_time_links.redeem(engine, token, NOW_S) is None


def test_creation_deletes_expired_links(engine: Pool) -> None:
    first_owner_link(engine)
    ada = users.create(engine, "Ada", "owner", None, NOW_S)
    one_time_links.create(engine, "sign_in", ada.id, NOW_S + TTL_S)
    assert sql.column(engine, "SELECT expires_s FROM one_time_links") == [NOW_S + 2 * TTL_S]
