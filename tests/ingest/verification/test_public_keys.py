"""Key directories become public keys; keys that cannot be used are left out."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ingest.verification.public_keys import KEYS_MAX, JsonWebKey, parse_directory, thumbprint
from tests.ingest.verification.operators.signing import Signer

SIGNER = Signer()
# https://www.rfc-editor.org/rfc/rfc9421#appendix-B.1.3
EC = {
    "kty": "EC",
    "crv": "P-256",
    "x": "qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA",
    "y": "Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0",
}
# https://www.rfc-editor.org/rfc/rfc7638#section-3.1
RSA = {
    "kty": "RSA",
    "e": "AQAB",
    "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjB"
    "ZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8"
    "KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_"
    "xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
}


def directory(*keys: object) -> bytes:
    return json.dumps({"keys": keys, "purpose": "ai"}).encode()


def test_thumbprint_is_that_of_the_example_of_rfc_7638() -> None:
    assert thumbprint(JsonWebKey(**RSA)) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def test_keys_of_all_types_are_read_by_their_thumbprints_whatever_id_they_have() -> None:
    keys = parse_directory(directory(SIGNER.jwk | {"kid": "1"}, EC, RSA | {"use": "sig"}))
    assert len(keys) == 3
    assert keys[SIGNER.key_id].key == SIGNER.private.public_key()
    assert {type(each.key) for each in keys.values()} >= {type(rsa_key()), type(ec_key())}


def rsa_key() -> rsa.RSAPublicKey:
    return rsa.generate_private_key(65_537, 2048).public_key()


def ec_key() -> ec.EllipticCurvePublicKey:
    return ec.generate_private_key(ec.SECP256R1()).public_key()


@pytest.mark.parametrize(
    "key",
    [
        1,
        {},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "OKP", "crv": "X25519", "x": SIGNER.jwk["x"]},
        {"kty": "OKP", "crv": "Ed25519"},
        {"kty": "OKP", "crv": "Ed25519", "x": "short"},
        {"kty": "OKP", "crv": "Ed25519", "x": "!" * 43},
        {"kty": "OKP", "crv": "Ed25519", "x": 1},
        EC | {"crv": "P-521"},
        EC | {"y": EC["x"]},  # a point that is not on the curve
        RSA | {"n": "AQAB"},
        RSA | {"n": "_" * 1_000},  # 6,000 bits
        RSA | {"e": "_" * 1_000},
    ],
)
def test_key_that_cannot_be_used_is_left_out(key: object) -> None:
    assert set(parse_directory(directory(key, SIGNER.jwk))) == {SIGNER.key_id}


def test_keys_beyond_the_maximum_are_left_out() -> None:
    assert parse_directory(directory(*[{}] * KEYS_MAX, SIGNER.jwk)) == {}


def test_key_that_is_not_utf_8_is_left_out() -> None:
    content = directory(SIGNER.jwk)
    assert set(parse_directory(content.replace(b"[", b'[{"kty": "\xff"}, ', 1))) == {SIGNER.key_id}


NESTED = b'{"keys": [' + b"[" * 30_000 + b"]" * 30_000 + b"]}"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys": 1}', b'{"keys": ["', b"\xff", b"[" * 50_000, NESTED])
def test_content_that_is_no_key_set_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON Web Key Set"):
        parse_directory(content)


@pytest.mark.parametrize(
    ("times", "time_s", "is_in_use"),
    [({}, 5, True), ({"nbf": 5, "exp": 5}, 5, True), ({"nbf": 6}, 5, False), ({"exp": 4}, 5, False)],
)
def test_key_is_in_use_from_its_first_to_its_last_second(times: dict[str, int], time_s: int, is_in_use: bool) -> None:
    [key] = parse_directory(SIGNER.directory(**times)).values()
    assert key.is_in_use(time_s) is is_in_use
