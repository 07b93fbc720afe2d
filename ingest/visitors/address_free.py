"""Texts with 12 bits in place of each address, so that a stored digest of a text does not single out the address.

`hits` has most of a log line, and with the key of a digest an attacker could try all addresses until one matches. A
million IPv4 addresses have the same 12 bits, but two logs that differ in addresses alone rarely agree in the bits. They
are a hash of the address alone, without a key: more lines of a reader, or another installation, do not add any bits.
"""

import re

from xxhash import xxh3_64_intdigest

BITS = 12
_IPV4 = re.compile(rb"\d\d?\d?\.\d\d?\d?\.\d\d?\d?\.\d\d?\d?")
_COLONS = re.compile(rb"[\da-fA-F]{0,4}:[\da-fA-F]{0,4}:[\da-fA-F:]*")
_IPV6 = re.compile(rb"::|(?::[\da-fA-F]{1,4}){7}")
"""Part of _COLONS that an IPv6 address has, and no time."""


def address_free(text: bytes) -> bytes:
    """Return a text with two bytes, which are no ASCII, in place of what looks like an IPv4 or IPv6 address.

    Percent-encoded colons, as in a query, are decoded.
    """
    text = _IPV4.sub(_hashed, text.replace(b"%3A", b":").replace(b"%3a", b":"))
    return _COLONS.sub(_hashed_ipv6, text) if _IPV6.search(text) else text


def _hashed_ipv6(found: re.Match[bytes]) -> bytes:
    return _hashed(found) if _IPV6.search(found[0]) else found[0]


def _hashed(found: re.Match[bytes]) -> bytes:
    bits = xxh3_64_intdigest(found[0]) >> 64 - BITS
    return bytes((0x80 | bits >> 6, 0x80 | bits & 0x3F))
