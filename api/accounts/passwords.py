"""Rules for passwords, and their argon2id hashes."""

import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from anyio import CapacityLimiter
from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from api.errors import InvalidPassword
from ingest.errors import RETRY_AFTER_S, Overloaded

CHARACTERS_MIN, CHARACTERS_MAX = 10, 200
AT_ONCE_MAX = 4
"""Maximum number of hashes that a process computes at once. Each takes 64 MiB of memory and about 0.1 s."""
WAITING_MAX = 8
"""Maximum number of hashes that wait for their turn."""
THREADS = CapacityLimiter(AT_ONCE_MAX + WAITING_MAX + 4)
"""Limit on the number of forms with passwords that are handled at once: a few more than there are places for hashes, so
that the others are refused at once, and none occupies the threads of look-ups."""
WAIT_S = 10
"""Maximum wait of a hash for its turn, in seconds."""

_HASHER = PasswordHasher()
_places = threading.BoundedSemaphore(AT_ONCE_MAX + WAITING_MAX)
_turns = threading.BoundedSemaphore(AT_ONCE_MAX)


def hashed(password: str | None) -> str | None:
    """Return the argon2id hash of a new password; None for no password.

    Raises:
        InvalidPassword: the password is too short or too long.
        Overloaded: too many hashes are computed at this moment.
    """
    if password is None:
        return None
    check(password)
    with _turn():
        return _HASHER.hash(_normalized(password))


def check(password: str) -> None:
    """Raise InvalidPassword if a new password is too short or too long. There is no other rule."""
    if not CHARACTERS_MIN <= len(password) <= CHARACTERS_MAX:
        raise InvalidPassword(f"a password has {CHARACTERS_MIN} to {CHARACTERS_MAX} characters")


def matches(password: str, stored: str | None) -> bool:
    """Return whether a password belongs to a stored hash.

    If `stored` is None, the function returns False after the same computation.

    Raises:
        Overloaded: too many hashes are computed at this moment.
    """
    with _turn():
        dummy = _dummy_hash()
        try:
            _HASHER.verify(stored or dummy, _normalized(password[: CHARACTERS_MAX + 1]))
        except VerifyMismatchError:
            return False
    return stored is not None


def is_outdated(stored: str) -> bool:
    """Return whether a hash has other parameters than those of this release."""
    return _HASHER.check_needs_rehash(stored)


@cache
def _dummy_hash() -> str:
    """Return the hash that is verified for an unknown user, which makes the response as slow as for a known user."""
    return _HASHER.hash("the password of no user")


def _normalized(password: str) -> bytes:
    """Return the same bytes for each way in which keyboards compose the characters of a password."""
    return unicodedata.normalize("NFKC", password).encode(errors="surrogatepass")


@contextmanager
def _turn() -> Iterator[None]:
    with _acquired(_places, 0), _acquired(_turns, WAIT_S):
        yield


@contextmanager
def _acquired(semaphore: threading.Semaphore, wait_s: float) -> Iterator[None]:
    """Run the block with the semaphore. Raises Overloaded if the semaphore does not become free in time."""
    if not semaphore.acquire(timeout=wait_s):
        raise Overloaded("too many people sign in at this moment", RETRY_AFTER_S)
    try:
        yield
    finally:
        semaphore.release()
