"""Key directories of signing agents, fetched in the background and cached.

A directory is only fetched for a host of the allow-list, over HTTPS, without redirects, and from a global address: the
header of a request must not make this service connect to the owner's network.
"""

import logging
import socket
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError, Future
from threading import Lock

import httpx
from cachetools import TLRUCache

from ingest.errors import DirectoryUnavailable
from ingest.verification.addresses import number_of
from ingest.verification.daemon_pool import DaemonPool
from ingest.verification.public_keys import PublicKey, parse_directory

LOG = logging.getLogger("readership.verification")
PATH = "/.well-known/http-message-signatures-directory"
CACHE_S, RETRY_S = 21_600, 300
"""Time to live of a directory, and of the failure to fetch one, in seconds."""
DEADLINE_S = 5.0
"""Deadline of a fetch, in seconds, which is checked when content arrives. A server can exceed it by sending its headers
byte by byte, each within IDLE_S."""
IDLE_S = 3.0
"""Timeout of connecting, and of waiting for the next bytes, in seconds."""
BYTES_MAX = 65_536
FETCHES_AT_ONCE = 2
Keys = Mapping[str, PublicKey]


class KeyDirectories:
    """Cache of the key directories of a few hosts. Safe for use by several threads.

    `wait_s` is the time for which `keys` waits for a directory that is not in the cache, in seconds. With 0, `keys`
    returns None until a fetch in the background has ended.
    """

    def __init__(
        self,
        hosts: Collection[str],
        fetch: Callable[[str], bytes] | None = None,
        wait_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = frozenset(hosts)
        self._fetch = fetch or fetch_directory
        self._wait_s = wait_s
        self._cache: TLRUCache[str, Keys | None] = TLRUCache(
            maxsize=max(1, len(hosts)), ttu=lambda host, keys, now: now + (CACHE_S if keys else RETRY_S), timer=clock
        )
        self._fetches: dict[str, Future[Keys | None]] = {}
        self._lock = Lock()
        self._pool = DaemonPool(self._load, FETCHES_AT_ONCE, "key-directories")

    def keys(self, host: str) -> Keys | None:
        """Return the keys of a host by thumbprint; None if they are not known, which is no evidence against a claim."""
        if host not in self._hosts:
            return None
        with self._lock:
            if host in self._cache:
                return self._cache[host]
            fetch = self._fetches.get(host)
            if fetch is None:
                fetch = self._fetches[host] = self._pool.submit(host)
        try:
            return fetch.result(self._wait_s)
        except (TimeoutError, CancelledError):
            return None

    def fetch_all(self) -> None:
        """Begin to fetch each directory that is not in the cache; wait for each as `keys` does."""
        for host in self._hosts:
            self.keys(host)

    def close(self) -> None:
        """Cancel the fetches that have not begun."""
        self._pool.cancel()

    def _load(self, host: str) -> Keys | None:
        """Fetch a directory into the cache. A failure is cached too, and logged."""
        keys = None
        try:
            keys = parse_directory(self._fetch(host))
        except (DirectoryUnavailable, ValueError) as error:
            LOG.warning("the key directory of %s cannot be used: %s; next attempt in %d s", host, error, RETRY_S)
        finally:  # also after an unexpected error, which is raised only for the requests that wait for this fetch
            with self._lock:
                self._cache[host] = keys
                self._fetches.pop(host, None)
        return keys


def global_addresses(host: str) -> list[str]:
    """Return the addresses of a host. Raises DirectoryUnavailable if one is not global, or the lookup failed."""
    try:
        records = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise DirectoryUnavailable(f"the DNS lookup failed: {error}") from None
    addresses = [str(address[4][0]) for address in records]
    if not all(number_of(address) is not None for address in addresses):
        raise DirectoryUnavailable("the host has an address of a local network")
    return addresses


def fetch_directory(
    host: str,
    addresses: Callable[[str], list[str]] = global_addresses,
    trusted: ssl.SSLContext | None = None,
    port: int = 443,
) -> bytes:
    """Return the content of a host's key directory. The host is looked up once: the connection is to the address that
    was checked.

    Raises: DirectoryUnavailable
    """
    deadline = time.monotonic() + DEADLINE_S
    address = addresses(host)[0]
    url = f"https://{f'[{address}]' if ':' in address else address}:{port}{PATH}"
    headers = {"Host": host, "Accept": "*/*", "Accept-Encoding": "identity"}
    try:
        with (
            httpx.Client(verify=trusted or True, trust_env=False, timeout=IDLE_S, follow_redirects=False) as client,
            client.stream("GET", url, headers=headers, extensions={"sni_hostname": host}) as response,
        ):
            return _content(response, deadline)
    except httpx.HTTPError as error:
        raise DirectoryUnavailable(f"the request failed: {type(error).__name__} {error}".rstrip()) from None


def _content(response: httpx.Response, deadline: float) -> bytes:
    if response.status_code != 200:
        raise DirectoryUnavailable(f"the host answered with status {response.status_code}")
    if "content-encoding" in response.headers:
        raise DirectoryUnavailable("the host compressed its answer, which was not asked for")
    content = bytearray()
    for chunk in response.iter_raw():
        content += chunk
        if len(content) > BYTES_MAX:
            raise DirectoryUnavailable(f"the answer is larger than {BYTES_MAX:,} bytes")
        if time.monotonic() > deadline:
            raise DirectoryUnavailable(f"the answer took longer than {DEADLINE_S:g} s")
    return bytes(content)
