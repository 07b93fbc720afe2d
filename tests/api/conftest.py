"""A project of its own for a test, in the shared service, and quick hashes of passwords."""

import secrets
from collections.abc import Iterator

import httpx
import pytest
from argon2 import PasswordHasher

from api.accounts import passwords
from tests.api.reports.client import client_of
from tests.processes.running import Running


@pytest.fixture(scope="module", autouse=True)
def _quick_hashes() -> Iterator[None]:
    """Hash passwords with little memory. `test_passwords` uses the hashes of the service, which take 0.1 s each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", PasswordHasher(time_cost=1, memory_cost=64))
        passwords._dummy_hash.cache_clear()
        yield
    passwords._dummy_hash.cache_clear()


@pytest.fixture
def site(service: Running) -> Iterator[httpx.Client]:
    """Yield a client of a new project with a write key; `hits` and `views` are relative to its URL."""
    with client_of(service, f"site-{secrets.token_hex(6)}") as client:
        yield client
