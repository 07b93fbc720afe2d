"""Numbers, days and times as viewers of several locales expect them."""

import tracemalloc
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from babel import Locale

from api.dashboard.web import locale

ENGLISH, GERMAN = Locale("en", "US"), Locale("de")
NOW = datetime(2026, 9, 1, 12, 30, tzinfo=UTC)


def test_first_known_locale_of_the_browser_is_used() -> None:
    expected = {
        "de-DE,de;q=0.9,en;q=0.8": "de_DE", "en;q=0.5, fr": "fr", "xx-XX, pt-BR;q=0.3": "pt_BR", "": "en", "*": "en",
        "de;q=high, sv": "sv", "../../etc/passwd": "en", "de@any-text": "de", "a" * 5_000: "en",
    }  # fmt: skip
    assert {header: str(locale.preferred(header)) for header in expected} == expected


def test_cache_of_locales_has_only_the_starts_of_headers() -> None:
    locale.preferred("xx")  # reads all that Babel knows of locales: 2 MB
    tracemalloc.start()
    for number in range(100):
        locale.preferred(f"en;q=0.{number:03},".ljust(50_000, "x"))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 1024**2


def test_numbers_have_the_separators_of_the_locale() -> None:
    assert (locale.number(1_234_567, ENGLISH), locale.number(1_234_567, GERMAN)) == ("1,234,567", "1.234.567")
    assert (locale.number(-12_345, ENGLISH), locale.number(12_345.5, GERMAN)) == ("-12,345", "12.345,5")


def test_compact_numbers_percentages_and_changes() -> None:
    compact = {0: "0", 999: "999", 1_000: "1K", 12_345: "12.3K", 4_600_000: "4.6M"}
    assert {value: locale.compact(value, ENGLISH) for value in compact} == compact
    percentages = {
        0: "0%", 0.000_01: "<0.1%", 0.0123: "1.2%", 0.456: "46%", 0.994: "99%", 0.996: "99.6%", 0.999_9: ">99.9%",
        1: "100%",
    }  # fmt: skip
    assert {ratio: locale.percent(ratio, ENGLISH) for ratio in percentages} == percentages
    changes = {(150, 100): "+50%", (50, 100): "\N{MINUS SIGN}50%", (7, 7): "0%", (7, 0): ""}
    assert {(now, before): locale.change(now, before, ENGLISH) for now, before in changes} == changes


def test_price_below_a_unit_has_two_significant_digits() -> None:
    prices = {0: "€0.00", 48_000: "< €0.0001", 9_600_000: "€0.00086", 48_000_000: "€0.0043", 13 * 10**9: "€1.17"}
    assert {size: locale.price(size, "0.09 EUR", ENGLISH) for size in prices} == prices
    assert locale.price(5_600_000_000, "0.09 EUR", GERMAN) == "0,50\N{NO-BREAK SPACE}€"


def test_days_and_times_are_in_the_zone_and_format_of_the_viewer() -> None:
    assert locale.day(date(2026, 9, 1), GERMAN) == "01.09.2026"
    assert locale.day(date(2026, 9, 1), ENGLISH) == "Sep 1, 2026"
    assert "14:30" in locale.moment(NOW, ZoneInfo("Europe/Berlin"), GERMAN)


def test_time_since_has_the_days_of_a_warning_for_two_months() -> None:
    for since, text in (
        (timedelta(minutes=5), "5 minutes ago"),
        (timedelta(hours=23), "23 hours ago"),
        (timedelta(hours=47), "1 day ago"),
        (timedelta(days=11, hours=20), "11 days ago"),
        (timedelta(days=59), "59 days ago"),
        (timedelta(days=60), "2 months ago"),
        (timedelta(days=400), "1 year ago"),
    ):
        assert locale.ago(NOW - since, NOW) == text


def test_time_of_the_day_is_in_the_zone() -> None:
    assert locale.clock(NOW.replace(hour=12, minute=30, second=5), ZoneInfo("Asia/Tokyo"), GERMAN) == "21:30:05"


def test_durations_have_two_units() -> None:
    texts = {0: "0 s", 0.4: "0 s", 59.6: "1 min", 125: "2 min 5 s", 3600: "1 h", 3_601: "1 h 1 s", 7_325: "2 h 2 min"}
    assert {seconds: locale.duration(seconds) for seconds in texts} == texts
