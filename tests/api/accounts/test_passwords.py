"""Passwords: their rules, their hashes, and the limit on parallel computations."""

import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from argon2 import PasswordHasher

from api.accounts import passwords
from api.errors import InvalidPassword
from ingest.errors import Overloaded


@pytest.fixture(scope="module", autouse=True)
def _quick_hashes() -> None:
    """Use the hashes of the service, in place of those of the fixture of this name for other tests."""


@pytest.fixture
def _waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let computations wait for longer than the timeout of a test, also on a slow machine."""
    monkeypatch.setattr(passwords, "WAIT_S", 1_000)


@pytest.mark.night
@pytest.mark.parametrize("characters", [10, 200])
def test_password_of_permitted_length_matches_only_itself(characters: int) -> None:
    stored = passwords.hashed("x" * characters)
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert passwords.matches("x" * characters, stored)
    assert not passwords.matches("x" * (characters - 1), stored)
    assert not passwords.matches("x" * (characters + 1), stored)


@pytest.mark.parametrize("characters", [0, 9, 201])
def test_password_of_another_length_is_refused(characters: int) -> None:
    with pytest.raises(InvalidPassword, match="10 to 200 characters"):
        passwords.hashed("x" * characters)


def test_password_in_another_composition_of_its_characters_matches() -> None:
    password = "tr\xe9s-secret\xe9"
    decomposed = unicodedata.normalize("NFD", password)
    assert decomposed != password
    assert passwords.matches(decomposed, passwords.hashed(password))


def test_hash_does_not_repeat() -> None:
    assert passwords.hashed("correct horse") != passwords.hashed("correct horse")


def test_password_of_an_unknown_user_never_matches() -> None:
    assert not passwords.matches("the password of no user", None)


def test_hash_with_other_parameters_is_outdated() -> None:
    assert not passwords.is_outdated(passwords.hashed("correct horse"))
    assert passwords.is_outdated(PasswordHasher(time_cost=1, memory_cost=1024).hash("correct horse"))


@pytest.mark.night
@pytest.mark.usefixtures("_waits_long")
def test_more_computations_than_the_maximum_wait_for_their_turn() -> None:
    stored = passwords.hashed("correct horse")
    threads = 3 * passwords.AT_ONCE_MAX
    barrier = threading.Barrier(threads)

    def check(_: int) -> bool:
        barrier.wait()
        return passwords.matches("correct horse", stored)

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(check, range(threads))) == [True] * threads


@pytest.mark.usefixtures("_waits_long")
def test_computation_above_the_maximum_of_those_that_wait_is_refused_at_once() -> None:
    with ExitStack() as stack:
        for _ in range(passwords.AT_ONCE_MAX + passwords.WAITING_MAX):
            stack.enter_context(passwords._acquired(passwords._places, 10))
        with pytest.raises(Overloaded):
            passwords.matches("correct horse", None)
    assert not passwords.matches("correct horse", None)
