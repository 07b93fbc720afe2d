"""Public keys of key directories, as JSON Web Keys (RFC 7517), by their thumbprints (RFC 7638)."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from http_message_signatures import HTTPSignatureAlgorithm, algorithms

KEYS_MAX = 100
"""Maximum number of keys of a directory; further keys are ignored."""
RSA_BITS = range(2048, 4097)
"""Accepted sizes of RSA keys. The time of a check grows with the square of the size."""


class JsonWebKey(msgspec.Struct, frozen=True):
    """Members of a JSON Web Key that identify a public key, and the times (`nbf`, `exp`) between which its directory
    permits its use, in seconds since 1970. Other members are ignored."""

    kty: str
    crv: str | None = None
    x: str | None = None
    y: str | None = None
    n: str | None = None
    e: str | None = None
    nbf: int | None = None
    exp: int | None = None


class PublicKey(NamedTuple):
    """Public key, and the algorithm of its signatures."""

    algorithm: type[HTTPSignatureAlgorithm]
    key: ed25519.Ed25519PublicKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    not_before_s: int | None = None
    expires_s: int | None = None

    def is_in_use(self, time_s: float) -> bool:
        """Return whether the directory permits the use of the key at a time, in seconds since 1970."""
        begin, end = self.not_before_s, self.expires_s
        return (begin is None or begin <= time_s) and (end is None or time_s <= end)


class _Directory(msgspec.Struct, frozen=True):
    keys: tuple[msgspec.Raw, ...]


def parse_directory(content: bytes) -> Mapping[str, PublicKey]:
    """Return the usable public keys of a JSON Web Key Set by thumbprint. Raises ValueError for another content."""
    try:
        keys = msgspec.json.decode(content, type=_Directory).keys
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not a JSON Web Key Set: {error}") from None
    return usable_keys(_decoded(keys[:KEYS_MAX]))


def _decoded(keys: Iterable[msgspec.Raw]) -> Iterable[JsonWebKey]:
    for key in keys:
        try:
            yield msgspec.json.decode(key, type=JsonWebKey)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # a key of a type that this release does not know does not make the other keys unusable


def usable_keys(keys: Iterable[JsonWebKey]) -> Mapping[str, PublicKey]:
    """Return the keys with a known type and valid members, by thumbprint."""
    return {thumbprint(key): public for key in keys if (public := public_key(key)) is not None}


def thumbprint(key: JsonWebKey) -> str:
    """Return the SHA-256 thumbprint of a key in base64url without padding, as the parameter `keyid` has it."""
    members = {name: getattr(key, name) for name in _REQUIRED[key.kty]}
    digest = hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def public_key(key: JsonWebKey) -> PublicKey | None:
    """Return the public key; None for an unknown type or members that are not valid."""
    if key.kty not in _READ:
        return None
    try:
        return _READ[key.kty](key)._replace(not_before_s=key.nbf, expires_s=key.exp)
    except ValueError:
        return None


def _okp(key: JsonWebKey) -> PublicKey:
    if key.crv != "Ed25519":
        raise ValueError(key.crv)
    return PublicKey(algorithms.ED25519, ed25519.Ed25519PublicKey.from_public_bytes(_bytes(key.x)))


def _rsa(key: JsonWebKey) -> PublicKey:
    modulus, exponent = _number(key.n), _number(key.e)
    if modulus.bit_length() not in RSA_BITS or exponent.bit_length() > 32:
        raise ValueError(modulus.bit_length())
    return PublicKey(algorithms.RSA_PSS_SHA512, rsa.RSAPublicNumbers(exponent, modulus).public_key())


def _ec(key: JsonWebKey) -> PublicKey:
    if key.crv != "P-256":
        raise ValueError(key.crv)
    numbers = ec.EllipticCurvePublicNumbers(_number(key.x), _number(key.y), ec.SECP256R1())
    return PublicKey(algorithms.ECDSA_P256_SHA256, numbers.public_key())


def _number(text: str | None) -> int:
    return int.from_bytes(_bytes(text))


def _bytes(text: str | None) -> bytes:
    """Decode base64url without padding. Raises: ValueError"""
    if text is None:
        raise ValueError(text)
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error


_READ: Mapping[str, Callable[[JsonWebKey], PublicKey]] = {"OKP": _okp, "RSA": _rsa, "EC": _ec}
_REQUIRED = {"OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y")}
"""Members that a thumbprint covers, in their order: https://www.rfc-editor.org/rfc/rfc7638#section-3.2"""
