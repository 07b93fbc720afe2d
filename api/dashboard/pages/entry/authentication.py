"""The check of a name and password, with the limits on attempts."""

from dataclasses import dataclass

from api.dashboard.accounts import attempts, users
from api.dashboard.accounts.users import User
from api.dashboard.web.visit import Visit

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


def authenticate(visit: Visit, name: str, password: str) -> User | None:
    """Return the user with this name and password, or None.

    Raises:
        TooManyAttempts
        Overloaded: too many passwords are checked at this moment.
    """
    control, now_s = visit.state.control, int(visit.now.timestamp())
    client = visit.request.client
    origin = attempts.origin(visit.state.settings.run_secret, client.host if client else "", name)
    wait_s = attempts.begin(control, origin, now_s)
    if wait_s:
        raise TooManyAttempts(wait_s)
    user = users.authenticate(control, name, password)
    if user is not None:
        attempts.passed(control, origin, now_s)
    return user
