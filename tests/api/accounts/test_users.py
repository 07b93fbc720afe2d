"""Users: names, roles, passwords, and the last owner."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from api.accounts import passwords, users
from api.accounts.users import User
from api.errors import AccountError, InvalidName, UserNotFound
from tests.api.accounts.conftest import NOW_S, PASSWORD
from tests.stores import sql
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url


def stored_hash(engine: Pool) -> str:
    return str(sql.column(engine, "SELECT password_hash FROM users")[0])


def test_created_user_is_found_by_name_without_regard_to_case(engine: Pool, ada: User) -> None:
    assert (ada.name, ada.role, ada.created_s, ada.last_seen_s, ada.has_password) == ("Ada", "owner", NOW_S, None, True)
    for name in ("Ada", "ada", " ADA "):
        assert users.find_by_name(engine, name) == ada
    for name in ("Ad", "Ada\x00", "", "\udcff"):
        with pytest.raises(UserNotFound, match="readership user list"):
            users.find_by_name(engine, name)


def test_second_user_of_the_same_name_is_refused(engine: Pool, ada: User) -> None:
    zoe = users.create(engine, "Zo\xeb", "viewer", None, NOW_S)
    for name in ("Ada", "ada", " ADA\n", "zoe\u0308"):
        with pytest.raises(AccountError, match="there is a user"):
            users.create(engine, name, "viewer", None, NOW_S)
    assert users.list_all(engine) == [ada, zoe]


def test_name_that_is_empty_too_long_or_invisible_is_refused(engine: Pool) -> None:
    for name in ("", "  ", "a" * 101, "a\nb", "a\u202eb", "a\x00", "\udcff"):
        with pytest.raises(InvalidName, match="1 to 100 characters"):
            users.create(engine, name, "owner", None, NOW_S)
    assert users.count(engine) == 0
    longest = "\u0390" * 100  # each folds to three characters
    users.create(engine, longest, "owner", None, NOW_S)
    assert users.find_by_name(engine, longest).name == longest


def test_users_are_listed_by_name_and_counted(engine: Pool, ada: User) -> None:
    bob, zoe = (users.create(engine, name, "viewer", None, NOW_S) for name in ("bob", "Zoe"))
    assert users.list_all(engine) == [ada, bob, zoe]
    assert users.count(engine) == 3
    assert not bob.has_password


def test_name_and_password_return_the_user(engine: Pool, ada: User) -> None:
    assert users.authenticate(engine, "ADA", PASSWORD) == ada
    for name, password in (("Ada", "wrong horse"), ("Bob", PASSWORD), ("", ""), ("Ada", ""), ("Ada\x00", PASSWORD)):
        assert users.authenticate(engine, name, password) is None


def test_user_without_password_cannot_sign_in_with_one(engine: Pool) -> None:
    users.create(engine, "Bob", "viewer", None, NOW_S)
    for password in ("", "None", "the password of no user"):
        assert users.authenticate(engine, "Bob", password) is None


def test_hash_with_old_parameters_is_replaced_at_sign_in(engine: Pool, ada: User) -> None:
    old = PasswordHasher(time_cost=1, memory_cost=1024).hash(PASSWORD)
    sql.run(engine, "UPDATE users SET password_hash = :old", old=old)
    assert users.authenticate(engine, "Ada", "wrong horse") is None
    assert stored_hash(engine) == old
    assert users.authenticate(engine, "Ada", PASSWORD) == ada
    new = stored_hash(engine)
    assert new != old
    assert users.authenticate(engine, "Ada", PASSWORD) == ada
    assert stored_hash(engine) == new


def test_new_password_replaces_the_old_one(engine: Pool, ada: User) -> None:
    users.set_password(engine, ada.id, passwords.hashed("battery staple"))
    assert users.authenticate(engine, "Ada", PASSWORD) is None
    assert users.authenticate(engine, "Ada", "battery staple") == ada
    users.set_password(engine, ada.id, None)
    assert users.authenticate(engine, "Ada", "battery staple") is None
    with pytest.raises(UserNotFound):
        users.set_password(engine, "nobody", None)


def test_last_owner_is_neither_removed_nor_demoted(engine: Pool, ada: User) -> None:
    users.create(engine, "Bob", "viewer", None, NOW_S)
    with pytest.raises(AccountError, match="add another owner first"):
        users.remove(engine, ada.id)
    with pytest.raises(AccountError, match="only owner"):
        users.set_role(engine, ada.id, "viewer")
    users.set_role(engine, ada.id, "owner")
    assert users.find_by_name(engine, "Ada") == ada


def test_one_of_two_owners_is_demoted_and_removed(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "viewer", None, NOW_S)
    users.set_role(engine, bob.id, "owner")
    users.set_role(engine, ada.id, "viewer")
    assert users.find_by_name(engine, "Ada").role == "viewer"
    users.remove(engine, ada.id)
    assert [user.name for user in users.list_all(engine)] == ["Bob"]
    for change in (lambda: users.remove(engine, ada.id), lambda: users.set_role(engine, ada.id, "viewer")):
        with pytest.raises(UserNotFound):
            change()


def test_two_owners_who_are_removed_at_once_leave_one(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "owner", None, NOW_S)

    def remove(user: User) -> bool:
        try:
            users.remove(engine, user.id)
        except AccountError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(remove, (ada, bob))) == [False, True]
    assert users.count(engine) == 1


def test_password_is_not_in_the_database(tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    users.create(engine, "Ada", "owner", passwords.hashed(PASSWORD), NOW_S)
    engine.close()
    assert PASSWORD.encode() not in b"".join(each.read_bytes() for each in tmp_path.iterdir())
