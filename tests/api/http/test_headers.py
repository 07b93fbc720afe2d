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


def test_etag_matches_strong_and_weak() -> None:
    matching = (ETAG, f"W/{ETAG}", f'"other", {ETAG}', f'"other",W/{ETAG}', "*")
    other = ("", '"other"', ETAG.strip('"'), ETAG.upper())
    for if_none_match in (*matching, *other):
        sent = request((b"if-none-match", if_none_match.encode()))
        for etag in (ETAG, f"W/{ETAG}"):
            assert matches_etag(sent, etag) is (if_none_match in matching), if_none_match
    assert not matches_etag(request(), ETAG)


def test_gzip_is_accepted_by_name_unless_its_weight_is_0() -> None:
    accepting = ("gzip, deflate, br, zstd", "br,GZIP", "br;q=1, gzip;q=0.5", "gzip ; q=1.000 , br")
    for text in (*accepting, "gzip;q=0", "gzip; q=0.00, br", "x-gzip-2, not gzip", "identity", ""):
        assert accepts_gzip(request((b"accept-encoding", text.encode()))) is (text in accepting), text
    assert not accepts_gzip(request())


def test_idempotency_key_is_returned() -> None:
    for key in ("a", "log-2026-09-01-part-7", "k" * 255, "\xe9"):
        assert idempotency_key(request((b"idempotency-key", key.encode("latin-1")))) == key
    assert idempotency_key(request()) is None


def test_empty_or_long_idempotency_key_is_rejected() -> None:
    for key in ("", "k" * 256):
        with pytest.raises(Problem) as raised:
            idempotency_key(request((b"idempotency-key", key.encode())))
        assert raised.value.kind == "invalid-header"
