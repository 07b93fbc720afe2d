"""Address lists that operators publish, as dated files: those that ship with the release, and newer ones of the owner.

A file is one JSON object. Its `sha256` is the hash of the prefixes, sorted as texts and joined by newlines, and is
checked on every load.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from ingest.errors import InvalidAddressList
from warehouse.plural import counted

FRESH_DAYS = 30
"""Number of days before the creation of a list, and after the last day on which its copy was seen, for whose requests
absence from the list is evidence, too."""
PREFIXES_MAX = 100_000
"""Maximum number of prefixes of a list. The longest list of 2026 has 1,058."""
SHORTEST_PREFIX: Mapping[int, int] = {4: 12, 6: 24}
"""Least length of a prefix, in bits, by IP version. A shorter prefix would verify millions of other machines; the
shortest ones of 2026 are a /16 and a /48."""
SHIPPED = Path(__file__).with_name("lists")
_US = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AddressList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A copy of a list of prefixes that an operator publishes.

    `tokens` are names of the column `agent`. `created` is the operator's own date, `seen` the day on which the copy was
    still the published one, `copies` the number of independent copies that were compared.
    """

    id: str
    operator: str
    tokens: tuple[str, ...]
    complete: bool
    """Whether all requests of the operator with these tokens come from these addresses."""
    never_spoofed: tuple[str, ...] = ()
    """Tokens whose absence from the list proves nothing, because programs on users' machines also send them."""
    exempt: tuple[str, ...] = ()
    """Lower-case words of user agents for which absence from the list proves nothing."""
    source: str
    """URL at which the operator publishes the list."""
    is_json: bool = True
    """Whether `source` is JSON that a program can read, not a page for people."""
    created: Annotated[datetime, msgspec.Meta(tz=True)] | None
    seen: date
    copies: int
    remark: str = ""
    sha256: str
    prefixes: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the value of the column `verified_by` for a verdict that rests on this copy."""
        return f"list:{self.id} {self.seen}"

    @property
    def fresh_us(self) -> range:
        """Return the times of requests, in microseconds since 1970, for which absence from the list is evidence."""
        midnight = datetime.combine(self.seen, time(), UTC)
        created = min(midnight, self.created) if self.created else midnight
        margin = timedelta(days=FRESH_DAYS)
        return range((created - margin - _EPOCH) // _US, (midnight + margin + timedelta(days=1) - _EPOCH) // _US)

    def is_fresh(self, now: datetime) -> bool:
        """Return whether absence from the list is evidence at a time."""
        return (now - _EPOCH) // _US in self.fresh_us


def sha256_of(prefixes: Iterable[str]) -> str:
    """Return the SHA-256 of prefixes, sorted as texts and joined by newlines, in hexadecimal."""
    return hashlib.sha256("\n".join(sorted(prefixes)).encode()).hexdigest()


def sorted_prefixes(texts: Iterable[str]) -> tuple[str, ...]:
    """Return distinct prefixes in canonical form: IPv4 before IPv6, in the order of their addresses.

    Raises: ValueError if a text is not a prefix, a prefix is shorter than SHORTEST_PREFIX, or there are more than
    PREFIXES_MAX or zero prefixes.
    """
    networks = set(map(ip_network, texts))
    if not 0 < len(networks) <= PREFIXES_MAX:
        raise ValueError(f"has {len(networks)} prefixes, not 1 to {PREFIXES_MAX:,}")
    for network in networks:
        if network.prefixlen < SHORTEST_PREFIX[network.version]:
            raise ValueError(f"has the prefix {network}, which is shorter than /{SHORTEST_PREFIX[network.version]}")
    in_order = sorted(networks, key=lambda each: (each.version, int(each.network_address), each.prefixlen))
    return tuple(map(str, in_order))


def read_time(text: str) -> datetime:
    """Return an operator's time to the second; UTC if the text has no zone. Raises ValueError."""
    read = datetime.fromisoformat(text)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC).replace(microsecond=0)


def encode(address_list: AddressList) -> bytes:
    """Return the file of a list, with one prefix per line."""
    return msgspec.json.format(msgspec.json.encode(address_list), indent=1) + b"\n"


def decode(content: bytes, name: str) -> AddressList:
    """Return the list in the content of a file. `name` is the name of the file in error messages.

    Raises: InvalidAddressList if the file is not a list, or its prefixes do not have the hash that the file states.
    """
    try:
        address_list = msgspec.json.decode(content, type=AddressList)
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidAddressList(f"{name} is not an address list: {error}") from None
    if sha256_of(address_list.prefixes) != address_list.sha256:
        raise InvalidAddressList(f"{name} was changed: its prefixes do not have the SHA-256 that the file states")
    return address_list


def read_folder(folder: Path) -> dict[str, AddressList]:
    """Return the lists in a folder by id, in order; none if there is no folder. Raises InvalidAddressList."""
    lists = (decode(path.read_bytes(), str(path)) for path in sorted(folder.glob("*.json")))
    return {each.id: each for each in lists}


def read_owners(folder: Path) -> dict[str, AddressList]:
    """Return the owner's lists as `read_folder` does, and check their prefixes, in 6 µs each.

    An invalid file of the owner is then an error at the start, and not at the first hit of its agent.

    Raises: InvalidAddressList
    """
    lists = read_folder(folder)
    for each in lists.values():
        try:
            sorted_prefixes(each.prefixes)
        except ValueError as error:
            raise InvalidAddressList(f"the address list {each.id} in {folder} is not valid: {error}") from None
    return lists


def newest(of_release: Mapping[str, AddressList], of_owner: Mapping[str, AddressList]) -> dict[str, AddressList]:
    """Return the lists of the release and of the owner by id. If both have a copy of a list, the one that was seen last
    is used.

    Of an owner's copy of a shipped list only the prefixes and their dates are used: its rules, such as the tokens, are
    those of the release.
    """
    lists = dict(of_release)
    for id, copy in of_owner.items():
        shipped_copy = of_release.get(id)
        if shipped_copy is None:
            lists[id] = copy
        elif copy.seen >= shipped_copy.seen:
            lists[id] = msgspec.structs.replace(shipped_copy, **{name: getattr(copy, name) for name in _OF_A_COPY})
    return lists


class OldLists(NamedTuple):
    """Lists that are too old to find spoofed requests of today: their number, of how many, and the newest day."""

    old: int
    lists: int
    newest: date

    def text(self, day: Callable[[date], str] = date.isoformat) -> str:
        """Return a sentence without its full stop."""
        return (
            f"{self.old} of {counted(self.lists, 'address list')} {'is' if self.old == 1 else 'are'} older than"
            f" {FRESH_DAYS} days, the newest of {day(self.newest)}: impostors of today are not recognised"
        )


def age_warning(lists: Iterable[AddressList], now: datetime) -> OldLists | None:
    """Return the lists that are too old to find spoofed requests of today; None if there are none.

    Only lists count that are complete and that `readership ranges refresh` can download.
    """
    decisive = [each for each in lists if each.complete and each.is_json]
    old = [each for each in decisive if not each.is_fresh(now)]
    return OldLists(len(old), len(decisive), max(each.seen for each in old)) if old else None


_OF_A_COPY = ("created", "seen", "copies", "remark", "sha256", "prefixes")
"""Fields that may differ between two copies of a list."""


@cache
def shipped() -> Mapping[str, AddressList]:
    """Return the lists that ship with this release, by id."""
    return read_folder(SHIPPED)


def current(folder: Path) -> Sequence[AddressList]:
    """Return the lists of the release, and the owner's newer copies and further lists. Raises InvalidAddressList."""
    return tuple(newest(shipped(), read_owners(folder)).values())
