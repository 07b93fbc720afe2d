"""Download of the operators' address lists, which happens only when the owner asks for it."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx
import msgspec

from ingest.errors import ListUnavailable
from ingest.verification.address_lists import AddressList, read_time, sha256_of, sorted_prefixes

BYTES_MAX = 5 * 1024 * 1024
"""Maximum size of a download, in bytes. The longest list of 2026 has 60 kB."""
DEADLINE_S, IDLE_S = 60.0, 10.0
"""Deadline of a download, and timeout of connecting and of waiting for the next bytes, in seconds."""
REDIRECTS_MAX = 3
_PREFIX_NAMES = ("ipv4Prefix", "ipv6Prefix", "ip_prefix", "ipv6_prefix")


class Change(NamedTuple):
    """Difference between two copies of a list."""

    old: AddressList
    new: AddressList

    @property
    def added(self) -> list[str]:
        before = set(self.old.prefixes)
        return [prefix for prefix in self.new.prefixes if prefix not in before]

    @property
    def removed(self) -> list[str]:
        after = set(self.new.prefixes)
        return [prefix for prefix in self.old.prefixes if prefix not in after]


class Published(NamedTuple):
    """Content of an operator's list."""

    created: datetime | None
    prefixes: tuple[str, ...]


class _File(msgspec.Struct, frozen=True, rename={"created": "creationTime"}):
    """File of an operator, in the format that Google introduced and most operators use."""

    prefixes: tuple[str | dict[str, Any], ...]
    created: str | None = None


def refreshed(address_list: AddressList, client: httpx.Client, now: datetime) -> Change:
    """Download the present copy of a list, and return its difference from `address_list`.

    Raises: ListUnavailable if the operator publishes no JSON, the download failed, or its copy is older.
    """
    if not address_list.is_json:
        raise ListUnavailable(f"the operator publishes a page for people at {address_list.source}, not JSON")
    published = parse(download(address_list.source, client))
    if published.created and address_list.created and published.created < address_list.created:
        raise ListUnavailable(
            f"the download was created on {published.created:%Y-%m-%d}, before the present copy"
            f" ({address_list.created:%Y-%m-%d}): an old copy in a cache"
        )
    copy = msgspec.structs.replace(
        address_list,
        created=published.created,
        seen=now.astimezone(UTC).date(),
        copies=1,
        remark="",
        sha256=sha256_of(published.prefixes),
        prefixes=published.prefixes,
    )
    return Change(address_list, copy)


def parse(content: bytes) -> Published:
    """Return the prefixes of an operator's file, and its creation time if it has one. Raises ListUnavailable."""
    try:
        file = msgspec.json.decode(content, type=_File)
        created = read_time(file.created) if file.created else None
        return Published(created, sorted_prefixes(_texts(file.prefixes)))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ListUnavailable(f"the download is not a list of prefixes: {error}") from None


def _texts(prefixes: Iterable[str | dict[str, Any]]) -> Iterable[str]:
    for each in prefixes:
        texts = [each] if isinstance(each, str) else [each[name] for name in _PREFIX_NAMES if each.get(name)]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"{each!r:.100} has none of {', '.join(_PREFIX_NAMES)}")
        yield from texts


def new_client() -> httpx.Client:
    """Return an HTTP client that uses the proxy and the certificates in the environment variables that httpx reads."""
    return httpx.Client(timeout=IDLE_S, follow_redirects=False, headers={"Accept": "application/json"})


def download(url: str, client: httpx.Client) -> bytes:
    """Return the content of an https URL. Redirects are followed on the same host only. Raises ListUnavailable."""
    deadline = time.monotonic() + DEADLINE_S
    host = urlsplit(url).netloc
    for _ in range(REDIRECTS_MAX + 1):
        if urlsplit(url).scheme != "https" or urlsplit(url).netloc != host:
            raise ListUnavailable(f"{host} redirects to {url}: only https URLs of the same host are followed")
        try:
            with client.stream("GET", url) as response:
                if not response.is_redirect:
                    return _content(response, deadline)
                url = urljoin(url, response.headers["Location"])
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ListUnavailable(f"the download failed: {type(error).__name__} {error}".rstrip()) from None
    raise ListUnavailable(f"{host} redirects more than {REDIRECTS_MAX} times")


def _content(response: httpx.Response, deadline: float) -> bytes:
    if response.status_code != 200:
        raise ListUnavailable(f"{response.url} answered with status {response.status_code}")
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > BYTES_MAX:
            raise ListUnavailable(f"the download is larger than {BYTES_MAX:,} bytes")
        if time.monotonic() > deadline:
            raise ListUnavailable(f"the download took longer than {DEADLINE_S:g} s")
    return bytes(content)
