"""Forward-confirmed reverse DNS: the name of an address is one of the operator's, and the name has that address.

The lookups use the standard library in a bounded pool of threads. dnspython was not chosen: with either, a lookup must
not block for longer than `wait_s`, and the system's resolver has the operator's configuration and a cache.
"""

import re
import socket
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from datetime import date
from functools import cache
from itertools import islice
from pathlib import Path
from threading import Lock

import msgspec
from cachetools import TLRUCache

from ingest.verification.addresses import number_of
from ingest.verification.daemon_pool import DaemonPool

FOUND_S, FAILED_S = 86_400, 300
"""Time to live in the cache of an address with a confirmed name, and of one without, in seconds."""
CACHE_ENTRIES = 50_000
"""Maximum number of addresses in the cache: about 10 MB."""
LOOKUPS_AT_ONCE = 8
WAITING_MAX = 256
"""Maximum number of lookups that have not ended. Further addresses are looked up when they are seen again."""
NAME_CHARACTERS_MAX = 253


class DocumentedNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Host names that an operator documents for the addresses of its crawlers. `checked` is the day of the review."""

    agents: tuple[str, ...]
    names: tuple[str, ...]
    source: str
    checked: date


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    crawler: tuple[DocumentedNames, ...]


@cache
def documented_names() -> tuple[DocumentedNames, ...]:
    """Return the rows of `dns_names.toml`."""
    text = Path(__file__).with_name("dns_names.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Table).crawler


def name_of(address: str) -> str:
    """Return the name of an address in reverse DNS. Raises OSError if there is none, or the lookup failed."""
    return socket.gethostbyaddr(address)[0]


def addresses_of(name: str) -> list[str]:
    """Return the addresses of a name. Raises OSError if there are none, or the lookup failed."""
    return [str(record[4][0]) for record in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]


class ReverseDns:
    """Cache of forward-confirmed names by address. Safe for use by several threads.

    `wait_s` is the time for which `pattern` waits for a lookup, in seconds. With 0, the first request from an address
    has no evidence, and later ones have it from the cache.
    """

    def __init__(
        self,
        wait_s: float = 2.0,
        name_of: Callable[[str], str] = name_of,
        addresses_of: Callable[[str], Sequence[str]] = addresses_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wait_s = wait_s
        self._name_of = name_of
        self._addresses_of = addresses_of
        self._names: TLRUCache[str, str | None] = TLRUCache(
            CACHE_ENTRIES, ttu=lambda address, name, now: now + (FOUND_S if name else FAILED_S), timer=clock
        )
        self._lookups: dict[str, Future[str | None]] = {}
        self._lock = Lock()
        self._pool = DaemonPool(self._look_up, LOOKUPS_AT_ONCE, "reverse-dns")

    def is_documented(self, agent: str) -> bool:
        """Return whether the operator of an agent documents the names of its addresses."""
        return agent in _patterns()

    def is_looked_up(self, address: str) -> bool:
        """Return whether the lookup of an address has ended, with or without a name, and is in the cache."""
        with self._lock:
            return address in self._names

    def pattern(self, agent: str, address: str) -> str | None:
        """Return the documented pattern that the confirmed name of an address matches, without its leading `*.`; None
        if the name is not confirmed in time, or matches no pattern of the agent."""
        patterns = _patterns().get(agent)
        if patterns is None or number_of(address) is None:
            return None
        name = self._confirmed(address)
        if name is None:
            return None
        return next((text.removeprefix("*.") for text, pattern in patterns.items() if pattern.fullmatch(name)), None)

    def look_up_all(self, addresses: Iterable[str], wait_s: float) -> None:
        """Look up the addresses that are not in the cache, LOOKUPS_AT_ONCE at a time.

        The method returns when all answers are in the cache, or after `wait_s` seconds.
        """
        deadline = time.monotonic() + wait_s
        rest = (address for address in addresses if number_of(address) is not None)
        while some := list(islice(rest, WAITING_MAX // 2)):
            with self._lock:
                lookups = [self._lookup(address) for address in some if address not in self._names]
            wait([lookup for lookup in lookups if lookup is not None], max(0.0, deadline - time.monotonic()))
            if time.monotonic() >= deadline:
                return

    def close(self) -> None:
        """Cancel the lookups that have not begun."""
        self._pool.cancel()

    def _confirmed(self, address: str) -> str | None:
        """Return the confirmed name of an address; None if there is none, or the lookup has not ended in time."""
        with self._lock:
            if address in self._names:
                return self._names[address]
            lookup = self._lookup(address)
        try:
            return lookup.result(self._wait_s) if lookup is not None else None
        except (TimeoutError, CancelledError):
            return None

    def _lookup(self, address: str) -> Future[str | None] | None:
        """Return the lookup of an address, which may have begun before; None if too many lookups wait. The caller holds
        the lock."""
        lookup = self._lookups.get(address)
        if lookup is None and len(self._lookups) < WAITING_MAX:
            lookup = self._lookups[address] = self._pool.submit(address)
        return lookup

    def _look_up(self, address: str) -> str | None:
        """Look up the name of an address and the addresses of the name, and store the answer in the cache."""
        try:
            name = self._name_of(address).rstrip(".").lower()[: NAME_CHARACTERS_MAX + 1]
            is_confirmed = number_of(address) in map(number_of, self._addresses_of(name))
            answer = name if is_confirmed and len(name) <= NAME_CHARACTERS_MAX else None
        except (OSError, ValueError):  # ValueError: a label longer than 63 characters, or a null character
            answer = None
        with self._lock:
            self._names[address] = answer
            self._lookups.pop(address, None)
        return answer


@cache
def _patterns() -> Mapping[str, Mapping[str, re.Pattern[str]]]:
    """Return the compiled patterns of host names, by agent and by the text of the pattern."""
    patterns: dict[str, dict[str, re.Pattern[str]]] = {}
    for row in documented_names():
        compiled = {name: re.compile(re.escape(name).replace(r"\*", "[a-z0-9.-]+")) for name in row.names}
        for agent in row.agents:
            patterns.setdefault(agent, {}).update(compiled)
    return patterns
