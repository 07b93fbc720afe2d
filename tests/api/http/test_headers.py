"""Request headers: first value, ETags, accepted encodings and Idempotency-Keys."""

import pytest
from starlette.requests import Request

from api.http.headers import accepts_gzip, header, idempotency_key, matches_etag
from api.http.problems import Problem

ETAG = '"0123abcd"'


def request(*headers: tuple[bytes, bytes]) -> Request:
    return Request({"type": "http", "headers": headers})


def test_first_of_two_values_is_returned() -> None:
    assert header(request((b"a", b"1"), (b"b", b"2"), (b"b", b"3")), b"b") == "2"
    assert header(request((b"a", b"1")), b"b") is None


@pytest.mark.parametrize(
    ("if_none_match", "expected"),
    [
        (ETAG, True),
        (f"W/{ETAG}", True),
        (f'"other", {ETAG}', True),
        (f'"other",W/{ETAG}', True),
        ("*", True),
        ("", False),
        ('"other"', False),
        (ETAG.strip('"'), False),
        (ETAG.upper(), False),
    ],
)
def test_etag_matches_strong_and_weak(if_none_match: str, expected: bool) -> None:
    for etag in (ETAG, f"W/{ETAG}"):
        assert matches_etag(request((b"if-none-match", if_none_match.encode())), etag) is expected


def test_request_without_if_none_match_matches_no_etag() -> None:
    assert not matches_etag(request(), ETAG)


@pytest.mark.parametrize(
    ("accept_encoding", "expected"),
    [
        ("gzip, deflate, br, zstd", True),
        ("br,GZIP", True),
        ("br;q=1, gzip;q=0.5", True),
        ("gzip ; q=1.000 , br", True),
        ("gzip;q=0", False),
        ("gzip; q=0.00, br", False),
        ("x-gzip-2, not gzip", False),
        ("identity", False),
        ("", False),
    ],
)
def test_gzip_is_accepted_by_name_unless_its_weight_is_0(accept_encoding: str, expected: bool) -> None:
    assert accepts_gzip(request((b"accept-encoding", accept_encoding.encode()))) is expected
    assert not accepts_gzip(request())


@pytest.mark.parametrize("key", ["a", "log-2026-09-01-part-7", "k" * 255, "\xe9"])
def test_idempotency_key_is_returned(key: str) -> None:
    assert idempotency_key(request((b"idempotency-key", key.encode("latin-1")))) == key
    assert idempotency_key(request()) is None


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_empty_or_long_idempotency_key_is_rejected(key: str) -> None:
    with pytest.raises(Problem) as raised:
        idempotency_key(request((b"idempotency-key", key.encode())))
    assert raised.value.kind == "invalid-header"
