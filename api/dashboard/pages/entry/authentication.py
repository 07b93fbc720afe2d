"""The check of a name and password, with the limits on attempts."""

from api.accounts import attempts, users
from api.accounts.attempts import AttemptKey
from api.accounts.users import User
from api.dashboard.web.forms import Refusal
from api.dashboard.web.visit import Visit
from ingest.errors import Overloaded
from warehouse.control.audit import Failure
from warehouse.database.pool import PoolError
from warehouse.database_errors import best_effort

MINUTE_S = 60


def authenticate(visit: Visit, name: str, password: str, failure: Failure, fault: str) -> User | Refusal:
    """Return the user with this name and password. For others, `failure` is in the audit log, and `fault` in the form.

    Too many attempts are refused even with the right password.

    Raises:
        Overloaded: too many passwords are checked at this moment; the attempt is not counted.
    """
    control, now_s = visit.state.control, int(visit.now.timestamp())
    key = key_of(visit, name)
    attempt = attempts.begin(control, key, now_s)
    if attempt.wait_s:
        minutes = -(-attempt.wait_s // MINUTE_S)
        wait = f"{attempt.wait_s} seconds" if attempt.wait_s <= MINUTE_S else f"{minutes} minutes"
        visit.form.fault("password", f"Too many failed attempts. Try again in {wait}.")
        return Refusal(429, {"Retry-After": str(attempt.wait_s)})
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
    if user is None:
        visit.form.fault("password", fault)
    return user or Refusal(422)


def key_of(visit: Visit, name: str) -> AttemptKey:
    """Return the account and the address of an attempt to sign in as `name`."""
    client = visit.request.client
    return attempts.attempt_key(visit.state.limits_key, client.host if client else "", name)
