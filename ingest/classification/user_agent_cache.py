"""Cache of the columns of a hit that depend only on its user agent, for posted hits and for imported logs."""

from collections.abc import Sequence
from sys import getsizeof
from threading import Lock

from cachetools import LRUCache

from ingest.classification.pool import Classifier, classify_many
from warehouse.schema import CLASSIFICATION

Columns = tuple[str | None, ...]
"""Values of the columns of `warehouse.schema.CLASSIFICATION`, in the order of the schema; `user_agent` is one of
them."""
CACHE_BYTES_MAX = 64 * 1024 * 1024
"""Maximum size of the cached user agents and their columns, in bytes: some 190,000 user agents of 130 characters."""
_USER_AGENT, _BROWSER = (CLASSIFICATION.names.index(name) for name in ("user_agent", "browser"))


class UserAgentCache:
    """Cache of the columns of each user agent; the least recently used are evicted.

    Safe for several threads. A thread that classifies holds the lock, so that no other thread classifies the same user
    agent meanwhile.
    """

    def __init__(self, classifier: Classifier = classify_many, bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._classifier = classifier
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._cached: LRUCache[str, Columns] = LRUCache(bytes_max, _size_bytes)

    def resize(self, bytes_max: int) -> None:
        """Change the maximum size, in bytes. The cached columns are removed."""
        with self._lock:
            self._bytes_max = bytes_max
            self._cached = LRUCache(bytes_max, _size_bytes)

    def columns(self, user_agent: str) -> Columns:
        with self._lock:
            try:
                return self._cached[user_agent]
            except KeyError:
                return self._classify([user_agent])[user_agent]

    def columns_of_all(self, user_agents: Sequence[str]) -> list[Columns]:
        """Return the columns of each user agent; those that are not cached are classified in one call."""
        with self._lock:
            cached = [self._cached.get(user_agent) for user_agent in user_agents]
            pairs = list(zip(user_agents, cached, strict=True))
            missing = [user_agent for user_agent, known in pairs if known is None]
            new = self._classify(list(dict.fromkeys(missing))) if missing else {}
        return [new[user_agent] if known is None else known for user_agent, known in pairs]

    @property
    def nbytes(self) -> int:
        return int(self._cached.currsize)

    def _classify(self, user_agents: Sequence[str]) -> dict[str, Columns]:
        new = {
            user_agent: (*attributes[:_USER_AGENT], user_agent, *attributes[_USER_AGENT:])
            for user_agent, attributes in zip(user_agents, self._classifier(user_agents), strict=True)
        }
        for user_agent, each in new.items():
            if _size_bytes(each) <= self._bytes_max:
                self._cached[user_agent] = each
        return new


def _size_bytes(columns: Columns) -> int:
    """Return the size in bytes of the columns, without the texts that many user agents share.

    The browser counts, because ua-parser takes the name of an unknown app from the user agent.
    """
    return getsizeof(columns) + getsizeof(columns[_USER_AGENT]) + getsizeof(columns[_BROWSER])
