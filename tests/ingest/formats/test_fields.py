"""Times are parsed in every form that logs use, and texts are decoded from any bytes."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import InvalidLine
from ingest.formats.fields import decode, field_text, iso_us, size_of, storable, time_us
from ingest.hits.hit import EPOCH

NOON_US = 1_789_473_600_000_000  # 2026-09-15T12:00:00Z, by `date -u -d @1789473600`


@pytest.mark.parametrize(
    ("written", "us"),
    [
        (1789473600, NOON_US), (1789473600.5, NOON_US + 500_000), (1789473600.1234562, NOON_US + 123_456),
        (1789473600000, NOON_US), (1789473600123.5, NOON_US + 123_500), (1789473600000001, NOON_US + 1),
        (1789473600000001999, NOON_US + 1), (0, 0), (-1, -1_000_000), ("1789473600", NOON_US),
        ("1789473600.500", NOON_US + 500_000), ("1789473600000001999", NOON_US + 1),
        ("2026-09-15T12:00:00Z", NOON_US), ("2026-09-15T12:00:00.123456789Z", NOON_US + 123_456),
        ("2026-09-15T12:00:00.5Z", NOON_US + 500_000), ("2026-09-15T14:00:00+02:00", NOON_US),
        ("2026-09-15T02:30:00.000-0930", NOON_US), ("2026/09/15 12:00:00.000", NOON_US),
        ("2026-09-15T12:00:00", NOON_US), ("15/Sep/2026:17:30:00 +0530", NOON_US),
    ],
)  # fmt: skip
def test_time_is_parsed_in_any_form(written: float | str, us: int) -> None:
    assert time_us(written) == us


@pytest.mark.parametrize(
    "written",
    [
        "", "-", "yesterday", "1e9", "2026-09-15", "2026-13-15T12:00:00Z", "2026-02-29T12:00:00Z",
        "2026-09-15T24:00:00Z", "2026-09-15T12:00:00+24:00", "0001-01-01T00:00:00+00:01",
        "\uff12026-09-15T12:00:00Z", "9" * 30, 10**30, -(10**18) * 100, 1e300,
    ],
)  # fmt: skip
def test_time_that_does_not_exist_is_malformed(written: float | str) -> None:
    with pytest.raises(InvalidLine):
        time_us(written)


@given(st.integers(124_416_000_000_000, 7_258_118_400_000_000).map(lambda us: EPOCH + timedelta(microseconds=us)))
def test_any_time_is_the_same_in_every_unit(instant: datetime) -> None:
    us = (instant - EPOCH) // timedelta(microseconds=1)
    assert iso_us(instant.isoformat()) == us
    assert time_us(us) == us
    assert time_us(us * 1_000) == us
    assert time_us(us // 1_000) == us // 1_000 * 1_000
    assert time_us(us // 1_000_000) == us // 1_000_000 * 1_000_000


def test_bytes_that_are_not_utf_8_are_decoded_as_latin_1() -> None:
    assert decode("é".encode()) == "é"
    assert decode("é".encode("latin-1")) == "é"


def test_characters_that_cannot_be_stored_are_replaced() -> None:
    assert storable("a\x00b\nc\x7fd\ud800") == "a�b�c�d�"
    assert storable("a b\u00a0é") == "a b\u00a0é"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (b"-", ""), (b"--", "--"), (rb"a\"b\\c", r'a"b\c'), (rb"\x22\xC3\xA9", '"\xe9'), (rb"\xE9", "\xe9"),
        (rb"\u00e9\ud800", "\xe9?"), (rb"a\bb\fc\nd\re\tf\vg", "\N{REPLACEMENT CHARACTER}".join("abcdefg")),
        (rb"\x2\u12\q", "x2u12q"), (b"trailing\\", "trailing\\"),
    ],
)  # fmt: skip
def test_escapes_of_apache_and_nginx_are_undone(field: bytes, text: str) -> None:
    assert field_text(field) == text


@pytest.mark.parametrize(
    ("field", "size"),
    [(b"0", 0), (b"5316", 5_316), (b"9" * 15, 10**15 - 1), (b"9" * 16, None), (b"-", None), (b"-1", None), (b"", None)],
)
def test_size_is_a_whole_number_of_at_most_15_digits(field: bytes, size: int | None) -> None:
    assert size_of(field) == size
