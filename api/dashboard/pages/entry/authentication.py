"""The check of a name and password, with the limits on attempts."""

from dataclasses import dataclass

from api.accounts import attempts, users
from api.accounts.attempts import AttemptKey
from api.accounts.users import User
from api.dashboard.web.visit import Visit
from ingest.errors import Overloaded
from warehouse.control.audit import Failure
from warehouse.database.pool import PoolError
from warehouse.database_errors import best_effort

MINUTE_S = 60


@dataclass
class TooManyAttempts(Exception):
    """The attempt is refused, even with the right password."""

    wait_s: int

    @property
    def advice(self) -> str:
        """Return a sentence for the user."""
        wait = f"{self.wait_s} seconds" if self.wait_s <= MINUTE_S else f"{-(-self.wait_s // MINUTE_S)} minutes"
        return f"Too many failed attempts. Try again in {wait}."

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the response, which has the status 429."""
        return {"Retry-After": str(self.wait_s)}


def authenticate(visit: Visit, name: str, password: str, failure: Failure = "failed to sign in") -> User | None:
    """Return the user with this name and password, or None; `failure` is then in the audit log.

    Raises:
        TooManyAttempts
        Overloaded: too many passwords are checked at this moment; the attempt is not counted.
    """
    control, now_s = visit.state.control, int(visit.now.timestamp())
    key = key_of(visit, name)
    attempt = attempts.begin(control, key, now_s)
    if attempt.wait_s:
        raise TooManyAttempts(attempt.wait_s)
    try:
        user = users.authenticate(control, name, password)
        if user is None:
            users.record_failure(control, name, failure)
        else:
            attempts.passed(control, key, now_s)
    except (Overloaded, PoolError):
        with best_effort("an attempt to sign in that was answered with 503 counts as failed"):
            attempts.withdraw(control, key, attempt)
        raise
    return user


def key_of(visit: Visit, name: str) -> AttemptKey:
    """Return the account and the address of an attempt to sign in as `name`."""
    client = visit.request.client
    return attempts.attempt_key(visit.state.limits_key, client.host if client else "", name)
