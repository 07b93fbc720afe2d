"""Texts with 12 bits in place of each address, so that a stored digest of a text does not single out the address.

`hits` has most of a log line, and with the key of a digest an attacker could try all addresses until one matches. A
million IPv4 addresses have the same 12 bits, but two logs that differ in addresses alone rarely agree in the bits. They
are a hash of the address alone, without a key: more lines of a reader, or another installation, do not add any bits.
"""

import re
from contextlib import suppress
from ipaddress import ip_address

from xxhash import xxh3_64_intdigest

BITS = 12
_IPV4 = re.compile(rb"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}")
_COLONS = re.compile(rb"[\da-fA-F]{0,4}:[\da-fA-F]{0,4}:[\da-fA-F:]*")
_IPV6 = re.compile(rb":(?::|[\da-fA-F]{1,4}(?::[\da-fA-F]{1,4}){6})")
"""Part of _COLONS that an IPv6 address has, and no time. Its fixed first character makes a search fast."""
_ENCODED = {b"%3A": b":", b"%3a": b":", b"%2E": b".", b"%2e": b"."}


def address_free(text: bytes) -> bytes:
    """Return a text with two bytes, which are no ASCII, in place of what looks like an IPv4 or IPv6 address.

    Percent-encoded colons and dots, as in a query, are decoded. Each spelling of an IPv6 address has the same bits.
    """
    for encoded, character in _ENCODED.items():
        text = text.replace(encoded, character)
    text = _IPV4.sub(lambda found: _bits(found[0]), text)
    return _COLONS.sub(_hashed_ipv6, text) if _IPV6.search(text) else text


def _hashed_ipv6(found: re.Match[bytes]) -> bytes:
    if not _IPV6.search(found[0]):
        return found[0]
    for part in (found[0], found[0].strip(b":")):
        with suppress(ValueError):
            return _bits(ip_address(part.decode()).packed)
    return _bits(found[0])


def _bits(address: bytes) -> bytes:
    bits = xxh3_64_intdigest(address) >> 64 - BITS
    return bytes((0x80 | bits >> 6, 0x80 | bits & 0x3F))
