"""Decoding of the text and the times of log fields, shared by all formats."""

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from ingest.errors import InvalidLine
from ingest.hits.hit import microseconds
from ingest.hits.url import UNSTORABLE

_MONTHS = {name: i for i, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)}
_CLF = re.compile(r"(\d{2})/([A-Z][a-z]{2})/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})", re.ASCII)
_ISO = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):?(\d\d))?", re.ASCII
)
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_WHITESPACE = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
SIZE_DIGITS_MAX = 15
_SECONDS = re.compile(rb"\d{1,9}(?:\.\d{1,9})?")
_UNIX = re.compile(r"\d{1,19}(?:\.\d{1,9})?", re.ASCII)
_UNITS = ((10**11, 10**6, 1), (10**14, 10**3, 1), (10**17, 1, 1), (math.inf, 1, 1_000))
"""Units of numbers since 1970 (seconds, milliseconds, microseconds, nanoseconds): the upper bound of the numbers in the
unit, and the factor and the divisor that convert them to microseconds."""
_FIRST_US = microseconds(datetime.min.replace(tzinfo=UTC))
_LAST_US = microseconds(datetime.max.replace(tzinfo=UTC))


def field_text(field: bytes) -> str:
    """Return the text of a field that its server may have escaped; `-`, which means no value, becomes empty.

    Apache and nginx escape with a backslash (`\\x22`, `\\"`, `\\t`, `\\u0001`), each with a subset of these forms.
    """
    if field == b"-":
        return ""
    return storable(decode(_ESCAPE.sub(_unescape, field) if b"\\" in field else field))


def size_of(field: bytes) -> int | None:
    """Return a number of bytes; None if the field is no whole number of at most 15 digits."""
    return int(field) if field.isdigit() and len(field) <= SIZE_DIGITS_MAX else None


def ms_of(field: bytes, unit_ms: float = 1_000) -> float | None:
    """Return seconds, such as 0.123, or another unit as milliseconds; None if the field is no such number."""
    return float(field) * unit_ms if _SECONDS.fullmatch(field) else None


def decode(field: bytes) -> str:
    """Return the field decoded as UTF-8, or as Latin-1 if it is not valid UTF-8."""
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field.decode("latin-1")


def storable(text: str) -> str:
    """Return the text with U+FFFD in place of each control character and lone surrogate."""
    return text if text.isprintable() else UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


@lru_cache(4_096)
def clf_us(written: str) -> int:
    """Return the microseconds from 1970 to a time of the form 31/Dec/2026:23:59:59 +0000. Raises InvalidLine."""
    fields = _CLF.fullmatch(written)
    if fields is None or fields[2] not in _MONTHS:
        raise InvalidLine(f"its time is not like 31/Dec/2026:23:59:59 +0000: {written}")
    day, year, hour, minute, second = (int(fields[i]) for i in (1, 3, 4, 5, 6))
    return _us(written, (year, _MONTHS[fields[2]], day, hour, minute, second, 0), fields.groups()[6:])


@lru_cache(4_096)
def iso_us(written: str) -> int:
    """Return the microseconds from 1970 to a time like 2026-12-31T23:59:59.5+00:00. A time without a zone is UTC.

    Raises:
        InvalidLine: the text is not of that form, or names a time that does not exist.
    """
    fields = _ISO.fullmatch(written)
    if fields is None:
        raise InvalidLine(f"its time is not like 2026-12-31T23:59:59Z: {written}")
    us = int((fields[7] or "").ljust(6, "0")[:6])
    return _us(written, (*map(int, fields.groups()[:6]), us), fields.groups()[7:])


def time_us(written: float | str) -> int:
    """Return the microseconds from 1970 to a time in any of the forms: a number since 1970, CLF or ISO 8601.

    The size of a number decides its unit: seconds, milliseconds, microseconds or nanoseconds. The unit is unambiguous
    for times from March 1973 on.

    Raises:
        InvalidLine: the form is unknown, or the time does not exist.
    """
    if not isinstance(written, str):
        return _unix_us(written)
    if _UNIX.fullmatch(written):
        return _unix_us(float(written) if "." in written else int(written))
    return clf_us(written) if written[2:3] == "/" else iso_us(written)


def _unix_us(number: float) -> int:
    factor, divisor = next((factor, divisor) for below, factor, divisor in _UNITS if abs(number) < below)
    ts_us = round(number * factor) // divisor
    if not _FIRST_US <= ts_us <= _LAST_US:
        raise InvalidLine("its time is out of range")
    return ts_us


def _us(written: str, local: tuple[int, ...], zone: tuple[str | None, ...]) -> int:
    """Return the microseconds from 1970 to a local time (year to microsecond) in a zone (sign, hours, minutes)."""
    year, month, day, hour, minute, second, us = local
    sign, zone_h, zone_min = zone
    offset = timedelta(hours=int(zone_h or 0), minutes=int(zone_min or 0))
    try:
        tz = timezone(-offset if sign == "-" else offset)
        return microseconds(datetime(year, month, day, hour, minute, second, us, tzinfo=tz).astimezone(UTC))
    except (ValueError, OverflowError):
        raise InvalidLine(f"there is no such time: {written}") from None


def _unescape(escape: re.Match[bytes]) -> bytes:
    byte, code_point, character = escape.groups()
    if byte:
        return bytes.fromhex(byte.decode())
    if code_point:
        return chr(int(code_point, 16)).encode(errors="replace")
    return _WHITESPACE.get(character, character)
