"""A field of a log line into text or into a time: what the formats of logs have in common."""

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
_UNIX = re.compile(r"\d{1,19}(?:\.\d{1,9})?", re.ASCII)
_UNITS = ((10**11, 10**6, 1), (10**14, 10**3, 1), (10**17, 1, 1), (math.inf, 1, 1_000))
"""Numbers since 1970 below each are of seconds, milliseconds, microseconds, nanoseconds; how to microseconds."""
_FIRST_US = microseconds(datetime.min.replace(tzinfo=UTC))
_LAST_US = microseconds(datetime.max.replace(tzinfo=UTC))


def decoded(field: bytes) -> str:
    """As UTF-8, or as Latin-1 where it is not UTF-8."""
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field.decode("latin-1")


def shown(text: str) -> str:
    """The text with U+FFFD for each character that no field may hold."""
    return text if text.isprintable() else UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


@lru_cache(4_096)
def clf_us(written: str) -> int:
    """Microseconds from 1970 to a time like 31/Dec/2026:23:59:59 +0000.

    Raises:
        InvalidLine: it is not of that form, or there is no such time.
    """
    fields = _CLF.fullmatch(written)
    if fields is None or fields[2] not in _MONTHS:
        raise InvalidLine(f"its time is not like 31/Dec/2026:23:59:59 +0000: {written}")
    day, year, hour, minute, second = (int(fields[i]) for i in (1, 3, 4, 5, 6))
    return _us(written, (year, _MONTHS[fields[2]], day, hour, minute, second, 0), fields.groups()[6:])


@lru_cache(4_096)
def iso_us(written: str) -> int:
    """Microseconds from 1970 to a time like 2026-12-31T23:59:59.5+00:00; one without a zone is UTC.

    Raises:
        InvalidLine: it is not of that form, or there is no such time.
    """
    fields = _ISO.fullmatch(written)
    if fields is None:
        raise InvalidLine(f"its time is not like 2026-12-31T23:59:59Z: {written}")
    us = int((fields[7] or "").ljust(6, "0")[:6])
    return _us(written, (*map(int, fields.groups()[:6]), us), fields.groups()[7:])


def time_us(said: float | str) -> int:
    """Microseconds from 1970 to a time in whatever form: a text, or a number since 1970.

    A number is of seconds, milliseconds, microseconds or nanoseconds by its size, which is clear from March 1973 on.

    Raises:
        InvalidLine: it is of no known form, or there is no such time.
    """
    if not isinstance(said, str):
        return _unix_us(said)
    if _UNIX.fullmatch(said):
        return _unix_us(float(said) if "." in said else int(said))
    return clf_us(said) if said[2:3] == "/" else iso_us(said)


def _unix_us(number: float) -> int:
    factor, divisor = next((factor, divisor) for below, factor, divisor in _UNITS if abs(number) < below)
    ts_us = round(number * factor) // divisor
    if not _FIRST_US <= ts_us <= _LAST_US:
        raise InvalidLine("its time is out of range")
    return ts_us


def _us(written: str, local: tuple[int, ...], zone: tuple[str | None, ...]) -> int:
    """Of a year, month, day, hour, minute, second and microsecond, and of a zone's sign, hours and minutes."""
    year, month, day, hour, minute, second, us = local
    sign, zone_h, zone_min = zone
    offset = timedelta(hours=int(zone_h or 0), minutes=int(zone_min or 0))
    try:
        tz = timezone(-offset if sign == "-" else offset)
        return microseconds(datetime(year, month, day, hour, minute, second, us, tzinfo=tz).astimezone(UTC))
    except (ValueError, OverflowError):
        raise InvalidLine(f"there is no such time: {written}") from None
