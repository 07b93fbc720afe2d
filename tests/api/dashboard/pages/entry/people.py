"""Users with a password, and the fields of their browsers."""

import itertools
import time

import httpx
from starlette.testclient import TestClient

from api.accounts import passwords, users
from api.accounts.users import Role, User
from tests.api.dashboard.site import Dashboard, post

PASSWORD = "correct horse"
COOKIE = "readership_session"
_NUMBERS = itertools.count(1)


def add_user(dashboard: Dashboard, role: Role = "viewer", password: str | None = PASSWORD) -> User:
    """Add a user with a name of its own."""
    return users.create(dashboard.engine, f"User {next(_NUMBERS)}", role, passwords.hashed(password), int(time.time()))


def sign_in(client: TestClient, user: User, password: str = PASSWORD, query: str = "") -> httpx.Response:
    """Post the form of the sign-in."""
    return post(client, f"/sign-in{query}", name=user.name, password=password)


def is_signed_in(client: TestClient, as_user: User | None = None) -> bool:
    """Return whether the client has a valid session, and check whose."""
    response = client.get("/account")
    assert response.status_code in (200, 303)
    if response.status_code == 200 and as_user is not None:
        assert as_user.name in response.text
    return bool(response.status_code == 200)


def with_address(dashboard: Dashboard, address: str) -> TestClient:
    """Return a client without a session, at an address of its own."""
    client = TestClient(dashboard.client.app, follow_redirects=False, client=(address, 50_000))
    client.app_state.update(dashboard.client.app_state)
    return client


def has_password(dashboard: Dashboard, user: User, password: str) -> bool:
    """Return whether the password is that of the user."""
    account = users.authenticate(dashboard.engine, user.name, password)
    return account is not None and account.id == user.id
