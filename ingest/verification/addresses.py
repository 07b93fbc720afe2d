"""IP addresses and prefixes as numbers."""

import socket
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_network

SPECIAL = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
    "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)  # fmt: skip
"""Prefixes that no client on the internet has, in IPv4 and in 2000::/3: https://www.iana.org/assignments/
iana-ipv4-special-registry/ and iana-ipv6-special-registry/. A sample log may have addresses for documentation."""
_MAPPED = 0xFFFF << 32
"""Number of the address ::ffff:0:0. An IPv4 address has the number of its IPv4-mapped IPv6 address: _MAPPED plus the 32
bits of the IPv4 address."""
_IPV4 = range(_MAPPED, _MAPPED + (1 << 32))
_GLOBAL_IPV6 = range(0x2000 << 112, 0x4000 << 112)
"""Numbers of 2000::/3, the only IPv6 prefix of which global unicast addresses are assigned."""
_LENGTHS = {str(bits): bits for bits in range(129)}
PACKED_MAPPED = _MAPPED.to_bytes(16)[:12]
"""First bytes of the packed form of an IPv4 address."""
NO_ADDRESS = bytes(16)
"""The packed address ::, which no client has, in place of a text that is no address."""
CHARACTERS_MAX, CACHED = 45, 4_096
"""Length of the longest address, and the number of addresses that a process has in memory after it parsed them."""


def interval(prefix: str) -> tuple[int, int]:
    """Return the numbers of the first and the last address of a prefix. Raises ValueError for another text."""
    address, _, length = prefix.partition("/")
    bits, family, offset = (128, socket.AF_INET6, 0) if ":" in address else (32, socket.AF_INET, _MAPPED)
    try:  # takes an eighth of the time of `ip_network`; the lists of a release have 5,600 prefixes
        first, size = int.from_bytes(socket.inet_pton(family, address)), 1 << (bits - _LENGTHS[length])
    except (OSError, ValueError, KeyError):
        size = 0
    if not size or first % size:  # a single address, a netmask, or no prefix at all
        network = ip_network(prefix)
        first, size = int(network.network_address), network.num_addresses
    return offset + first, offset + first + size - 1


def special_intervals() -> list[tuple[int, int]]:
    """Return the numbers of the first and the last address of each interval in which no client on the internet is."""
    outside = (0, _IPV4.start - 1), (_IPV4.stop, _GLOBAL_IPV6.start - 1), (_GLOBAL_IPV6.stop, (1 << 128) - 1)
    return [*outside, *map(interval, SPECIAL)]


def contains(prefixes: Iterable[str], number: int) -> bool:
    """Return whether an address, as the number that `number_of` returns, is in a prefix."""
    return any(first <= number <= last for first, last in map(interval, prefixes))


def packed(address: str | None) -> bytes:
    """Return an address as 16 bytes, an IPv4 address as its IPv4-mapped IPv6 address; NO_ADDRESS for any other text.

    A text with a zone id is no address: only addresses of a local network have one.
    """
    return _cached(address) if address and len(address) <= CHARACTERS_MAX else NO_ADDRESS


def packed_all(addresses: Iterable[str | None]) -> list[bytes]:
    """Return what `packed` returns for each address of a chunk of a log, which are too many for its cache."""
    return [_packed(text) if text and len(text) <= CHARACTERS_MAX else NO_ADDRESS for text in addresses]


def _packed(address: str) -> bytes:
    try:
        if ":" in address:
            return socket.inet_pton(socket.AF_INET6, address)
        return PACKED_MAPPED + socket.inet_pton(socket.AF_INET, address)
    except (OSError, ValueError):  # ValueError: a null character or a lone surrogate
        return NO_ADDRESS


_cached = lru_cache(CACHED)(_packed)


def text_of(number: bytes) -> str:
    """Return the text of a packed address, an IPv4 address for its IPv4-mapped IPv6 address."""
    if number.startswith(PACKED_MAPPED):
        return socket.inet_ntop(socket.AF_INET, number[12:])
    return socket.inet_ntop(socket.AF_INET6, number)


def number_of(address: str) -> int | None:
    """Return the number of an address that a client on the internet can have; None for any other text.

    A private, link-local or other special address belongs to a proxy or a local network.
    """
    number = int.from_bytes(packed(address))
    return None if any(first <= number <= last for first, last in _SPECIAL) else number


def is_truncated(address: bytes) -> bool:
    """Return whether a packed address may have been anonymised: an IPv4 address that ends in .0, an IPv6 address
    without a host part."""
    return not (address[15] if address.startswith(PACKED_MAPPED) else any(address[8:]))


_SPECIAL = special_intervals()
