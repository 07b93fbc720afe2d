"""Numbers, days and times in the formats of the viewer's locale."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Literal

from babel import Locale, UnknownLocaleError, dates, numbers

DEFAULT = Locale("en")
HEADER_CHARACTERS_MAX = 200
DAYS_MAX = 60
"""Time since an instant from which it is shown in months, in days."""


def preferred(accept_language: str) -> Locale:
    """Return the first locale of an Accept-Language header that is known, or the default."""
    return _first_known(accept_language[:HEADER_CHARACTERS_MAX])


@lru_cache(maxsize=256)
def _first_known(accept_language: str) -> Locale:
    for tag in _tags(accept_language):
        try:
            return Locale.parse(tag.partition("@")[0], sep="-")  # a modifier is any text, and no header has one
        except (UnknownLocaleError, ValueError):
            continue
    return DEFAULT


def _tags(accept_language: str) -> Iterator[str]:
    """Yield the language tags of the header in the order of their weights."""
    weighted = []
    for item in accept_language.split(","):
        tag, _, weight = item.strip().partition(";q=")
        try:
            weighted.append((-float(weight or 1), tag))
        except ValueError:
            continue
    yield from (tag for _, tag in sorted(weighted, key=lambda pair: pair[0]) if tag not in ("", "*"))


_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@lru_cache(maxsize=4_096)
def number(value: int | float, locale: Locale) -> str:
    """Return a number with the locale's separators: 12,345."""
    return numbers.format_decimal(value, locale=locale)


def compact(value: int, locale: Locale) -> str:
    """Return a short number for a small place: 12.3K."""
    return numbers.format_compact_decimal(value, locale=locale, fraction_digits=1 if value >= 1_000 else 0)


def size(value: int, locale: Locale) -> str:
    """Return a number of bytes in a decimal unit: 1.2 GB."""
    power = min((len(str(value)) - 1) // 3, len(_UNITS) - 1)
    text = numbers.format_decimal(value / 1_000**power, format="#,##0.#" if power else "0", locale=locale)
    return f"{text}\N{NO-BREAK SPACE}{_UNITS[power]}"


def price(value: int, per_gb: str, locale: Locale) -> str:
    """Return the price of bytes, below 1 EUR with up to two significant digits: 1.20 EUR, 0.0043 EUR, < 0.0001 EUR."""
    amount, _, currency = per_gb.partition(" ")
    exact = value / 1e9 * float(amount)
    shown = max(float(f"{exact:.2g}"), 1e-4) if 0 < exact < 1 else exact
    text = numbers.format_currency(shown, currency, locale=locale, decimal_quantization=exact >= 1)
    return f"< {text}" if 0 < exact < 1e-4 else text


def percent(ratio: float, locale: Locale) -> str:
    """Return a ratio as a percentage: one decimal near 0 and 100 %, which it reads only for none and all: <0.1%."""
    shown = min(max(ratio, 0.001), 0.999) if 0 < ratio < 1 else ratio
    pattern = locale.percent_formats[None].pattern
    has_decimal = 0 < abs(shown) < 0.1 or 0.995 <= shown < 1
    sign = "<" if ratio < shown else ">" if ratio > shown else ""
    return sign + numbers.format_percent(shown, pattern.replace("0", "0.0") if has_decimal else pattern, locale)


def change(now: float, before: float, locale: Locale) -> str:
    """Return the change between two periods as a signed percentage; empty if there is nothing to compare with."""
    if before == 0:
        return ""
    ratio = (now - before) / before
    sign = "+" if ratio > 0 else "\N{MINUS SIGN}" if ratio < 0 else ""
    return sign + numbers.format_percent(abs(ratio), locale=locale)


def day(value: date, locale: Locale) -> str:
    """Return a day: Sep 1, 2026."""
    return dates.format_date(value, "medium", locale=locale)


def territory(code: str) -> str:
    """Return the name of a country in the language of the pages: Germany. An unknown code is returned."""
    return str(DEFAULT.territories.get(code, code))


def language(tag: str) -> str:
    """Return the name of a language in the language of the pages: Portuguese (Brazil). An unknown tag is returned."""
    try:
        return str(Locale.parse(tag, sep="-").get_display_name(DEFAULT) or tag)
    except (UnknownLocaleError, ValueError):
        return tag


def month(value: date, locale: Locale) -> str:
    """Return the month of a day: September 2026."""
    return dates.format_skeleton("yMMMM", datetime(value.year, value.month, 1, 12), locale=locale)  # noqa: DTZ001  # a day


def moment(value: datetime, zone: tzinfo, locale: Locale) -> str:
    """Return a day with its time in a zone: Sep 1, 2026, 12:30 PM."""
    return dates.format_datetime(value.astimezone(zone), "medium", locale=locale)


def clock(value: datetime, zone: tzinfo, locale: Locale, length: Literal["short", "medium"] = "medium") -> str:
    """Return the time of the day in a zone: 12:30:05 PM, or 12:30 PM if it is short."""
    return dates.format_time(value.astimezone(zone), length, locale=locale)


def ago(value: datetime, now: datetime) -> str:
    """Return the time since `value` in the language of the pages: 5 minutes ago.

    Up to DAYS_MAX the days are complete ones, as in the warnings about silent sources.
    """
    since = now - value
    if 0 < since.days < DAYS_MAX:
        since = timedelta(days=since.days)
        return dates.format_timedelta(-since, "day", DAYS_MAX, add_direction=True, locale=DEFAULT)
    return dates.format_timedelta(-since, threshold=1, add_direction=True, locale=DEFAULT)


def duration(seconds: float) -> str:
    """Return a duration in its two largest units, in the language of the pages: 1 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{count} {unit}" for count, unit in ((hours, "h"), (minutes, "min"), (rest, "s")) if count]
    return " ".join(parts[:2]) or "0 s"
