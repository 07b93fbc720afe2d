"""Addresses of clients: their networks, and the keyed hashes by which limits count them."""

import hashlib

from ingest.verification.addresses import NO_ADDRESS, PACKED_MAPPED, packed, text_of


def hashed_address(address: str, secret: bytes, bits: int = 64) -> bytes:
    """Return the keyed hash of a client's address, or of its network if that is one client: see `network`."""
    return hashed(network(address, bits), secret)


def hashed(text: str, secret: bytes) -> bytes:
    """Return a keyed hash of 16 bytes."""
    return hashlib.blake2b(text.encode(), digest_size=16, key=secret).digest()


def unmapped(address: str) -> str:
    """Return the IPv4 address in an IPv4-mapped one, such as `::ffff:192.0.2.1`; any other address as it is.

    A socket that listens on `::` also accepts IPv4 connections, and has their addresses in this form.
    """
    number = packed(address)
    return text_of(number) if number.startswith(PACKED_MAPPED) else address


def network(address: str, bits: int) -> str:
    """Return the network of an IPv6 address, or an IPv4 address as it is.

    One machine can use all addresses of its /64 network, and one customer often a whole /56 network.
    """
    number = packed(address)
    if number == NO_ADDRESS or number.startswith(PACKED_MAPPED):
        return unmapped(address)
    return f"{text_of(number[: bits // 8].ljust(16, bytes(1)))}/{bits}"
