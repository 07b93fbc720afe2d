"""Requests that an agent may send to the model server, whose key may also manage files and the organization."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

REFUSALS_LOGGED_MAX = 20
"""Maximum number of different refused requests in the log of a turn."""
TARGET_CHARACTERS = 100
"""Maximum length of a refused request's target in the log."""


@dataclass(slots=True)
class ModelCalls:
    """Allow-list of a turn, and the number of its requests.

    `allowed` has methods and paths, such as `POST /chat/completions`. `on_refusal` receives a line for the log.
    """

    allowed: Collection[str]
    count_max: int
    on_refusal: Callable[[str], None] = lambda text: None
    count: int = 0
    _refused: set[str] = field(default_factory=set)

    def refusal(self, method: str, target: str) -> str | None:
        """Return why a request is refused, and log the reason once; or count the request and return None.

        The path is compared without decoding, so that no other spelling of a path is equal to an allowed one.
        """
        if f"{method} {target.partition('?')[0]}" in self.allowed:
            self.count += 1
            return self.fault()
        request = ascii(f"{method[:10]} {target[:TARGET_CHARACTERS]}")[1:-1]
        reason = f"the gateway refused {request}: the agent may only send {', '.join(sorted(self.allowed))}"
        if reason not in self._refused and len(self._refused) < REFUSALS_LOGGED_MAX:
            self._refused.add(reason)
            self.on_refusal(reason)
        return reason

    def fault(self) -> str | None:
        """Return why the turn must stop, or None."""
        is_exceeded = self.count > self.count_max
        return f"it sent more than {self.count_max} requests to the model server in one turn" if is_exceeded else None
