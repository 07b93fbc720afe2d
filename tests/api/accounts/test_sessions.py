"""Sessions: how they start, are renewed and end."""

from pathlib import Path

import pytest

from api.accounts import passwords, sessions, users
from api.accounts.sessions import TTL_S
from api.accounts.users import User
from api.errors import UserNotFound
from tests.api.accounts.conftest import NOW_S, PASSWORD
from tests.stores import sql
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.folder import sqlite_url


def name_of(engine: Pool, token: str, now_s: int = NOW_S) -> str | None:
    user = sessions.find(engine, token, now_s)
    return None if user is None else user.name


def test_session_belongs_to_its_user(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "viewer", None, NOW_S)
    for user in (ada, bob):
        assert name_of(engine, sessions.start(engine, user.id, NOW_S)) == user.name
    for token in ("", "x" * 43, "\udcff\x00"):
        assert sessions.find(engine, token, NOW_S) is None


def test_session_of_an_unknown_user_is_not_started(engine: Pool, ada: User) -> None:
    with pytest.raises(UserNotFound):
        sessions.start(engine, "nobody", NOW_S)
    assert sql.rows(engine, "SELECT * FROM sessions") == []


def test_unused_session_ends_after_thirty_days(engine: Pool, ada: User) -> None:
    token = sessions.start(engine, ada.id, NOW_S)
    assert sessions.find(engine, token, NOW_S + TTL_S) is None
    assert name_of(engine, token, NOW_S + TTL_S - 1) == "Ada"


def test_session_that_is_used_does_not_end(engine: Pool, ada: User) -> None:
    token = sessions.start(engine, ada.id, NOW_S)
    for day in (20, 40, 60):
        assert name_of(engine, token, NOW_S + day * 86_400) == "Ada"


def test_use_is_stored_once_an_hour(engine: Pool, ada: User) -> None:
    token = sessions.start(engine, ada.id, NOW_S)
    for later_s, seen_s in ((3_599, 0), (3_600, 3_600), (5_000, 3_600)):
        assert name_of(engine, token, NOW_S + later_s) == "Ada"
        assert users.find_by_name(engine, "Ada").last_seen_s == NOW_S + seen_s


def test_start_deletes_expired_sessions(engine: Pool, ada: User) -> None:
    for now_s in (NOW_S, NOW_S + 1, NOW_S + TTL_S):
        sessions.start(engine, ada.id, now_s)
    assert sql.column(engine, "SELECT renewed_s FROM sessions ORDER BY renewed_s") == [NOW_S + 1, NOW_S + TTL_S]


def test_sign_out_ends_one_session(engine: Pool, ada: User) -> None:
    first, second = (sessions.start(engine, ada.id, NOW_S) for _ in range(2))
    sessions.end(engine, first)
    sessions.end(engine, first)
    assert [name_of(engine, token) for token in (first, second)] == [None, "Ada"]


def test_sign_out_everywhere_ends_all_sessions_of_one_user(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "viewer", None, NOW_S)
    of_ada = [sessions.start(engine, ada.id, NOW_S) for _ in range(2)]
    of_bob = sessions.start(engine, bob.id, NOW_S)
    sessions.end_all(engine, ada.id)
    assert [name_of(engine, token) for token in (*of_ada, of_bob)] == [None, None, "Bob"]
    assert name_of(engine, sessions.start(engine, ada.id, NOW_S)) == "Ada"


def test_new_password_ends_all_sessions(engine: Pool, ada: User) -> None:
    for password in ("battery staple", None):
        token = sessions.start(engine, ada.id, NOW_S)
        users.set_password(engine, ada.id, passwords.hashed(password))
        assert sessions.find(engine, token, NOW_S) is None
        assert name_of(engine, sessions.start(engine, ada.id, NOW_S)) == "Ada"


def test_removed_user_has_no_session(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "owner", passwords.hashed(PASSWORD), NOW_S)
    token = sessions.start(engine, bob.id, NOW_S)
    users.remove(engine, bob.id)
    assert sessions.find(engine, token, NOW_S) is None


def test_session_has_the_changed_role(engine: Pool, ada: User) -> None:
    bob = users.create(engine, "Bob", "viewer", passwords.hashed(PASSWORD), NOW_S)
    token = sessions.start(engine, bob.id, NOW_S)
    users.set_role(engine, bob.id, "owner")
    user = sessions.find(engine, token, NOW_S)
    assert user is not None
    assert user.role == "owner"


def test_session_works_on_a_database_that_cannot_be_written(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "control.sqlite")
    engine = database.connect(url)
    user = users.create(engine, "Ada", "owner", None, NOW_S)
    token = sessions.start(engine, user.id, NOW_S)
    with engine.connect() as connection:  # the pool has no other connection
        connection.execute("PRAGMA query_only = ON")
    assert name_of(engine, token, NOW_S + 3_600) == "Ada"
    assert users.find_by_name(engine, "Ada").last_seen_s == NOW_S
    engine.close()


def test_token_is_not_in_the_database(tmp_path: Path) -> None:
    engine = database.connect(sqlite_url(tmp_path / "control.sqlite"))
    token = sessions.start(engine, users.create(engine, "Ada", "owner", None, NOW_S).id, NOW_S)
    engine.close()
    assert len(token) == 43
    assert token.encode() not in b"".join(each.read_bytes() for each in tmp_path.iterdir())
