"""Time buckets are contiguous, contain each instant once, and begin at the full hours and midnights of the zone."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warehouse.errors import TooManyBuckets
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.time_buckets import BUCKETS_MAX, INTERVALS, Bucket, buckets

MICROSECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("microseconds", "minutes", "hours", "days"))
ZONES = st.sampled_from(sorted(available_timezones())).map(ZoneInfo)
YEAR_1900, YEAR_1972, YEAR_2100 = (datetime(year, 1, 1, tzinfo=UTC) for year in (1900, 1972, 2100))


def instants(first: datetime = YEAR_1900) -> st.SearchStrategy[datetime]:
    return st.datetimes(first.replace(tzinfo=None), YEAR_2100.replace(tzinfo=None), timezones=st.just(UTC))


LENGTHS = st.timedeltas(MICROSECOND, 40 * DAY)


def instant(bucket: Bucket) -> datetime:
    return datetime.fromtimestamp(bucket.start_s, UTC)


def of(start: str, end: str, interval: str, zone: str = "UTC") -> list[Bucket]:
    """Return the buckets of a range. Times without an offset are in the zone."""
    times = [datetime.fromisoformat(text) for text in (start, end)]
    first, last = (each if each.tzinfo else each.replace(tzinfo=ZoneInfo(zone)) for each in times)
    return buckets(TimeRange(first.astimezone(UTC), last.astimezone(UTC)), interval, ZoneInfo(zone))


def hours(result: list[Bucket]) -> list[float]:
    """Return the lengths of all buckets but the last, in hours."""
    return [(after.start_s - before.start_s) / 3600 for before, after in pairwise(result)]


def labels(result: list[Bucket]) -> list[str]:
    return [bucket.label for bucket in result]


@given(instants(), LENGTHS, st.sampled_from(INTERVALS), ZONES)
@example(datetime(2011, 12, 30, 9, tzinfo=UTC), 3 * DAY, "day", ZoneInfo("Pacific/Apia"))
def test_buckets_are_contiguous_and_cover_the_range(
    start: datetime, length: timedelta, interval: str, zone: ZoneInfo
) -> None:
    result = buckets(TimeRange(start, start + length), interval, zone)
    starts = [instant(bucket) for bucket in result]
    assert all(before < after for before, after in pairwise(starts))
    assert starts[0] <= start
    assert starts[1:2] == [] or starts[1] > start
    assert starts[-1] < start + length


@given(instants(), st.timedeltas(MICROSECOND, 3 * DAY), st.sampled_from(INTERVALS), ZONES)
def test_bucket_of_an_instant_is_the_same_in_every_range(
    start: datetime, length: timedelta, interval: str, zone: ZoneInfo
) -> None:
    last = buckets(TimeRange(start, start + length), interval, zone)[-1]
    assert buckets(TimeRange(start + length - MICROSECOND, start + length), interval, zone) == [last]


@given(instants(), ZONES)
def test_hour_has_one_hour_and_one_offset_on_the_clock(at: datetime, zone: ZoneInfo) -> None:
    (bucket,) = buckets(TimeRange(at, at + MICROSECOND), "hour", zone)
    begin, local = instant(bucket).astimezone(zone), at.astimezone(zone)
    assert bucket.label == begin.isoformat()
    hour = {"minute": 0, "second": 0, "microsecond": 0}
    assert begin.replace(**hour).isoformat() == local.replace(**hour).isoformat()
    just_before = (instant(bucket) - MICROSECOND).astimezone(zone)
    assert just_before.replace(**hour).isoformat() != begin.replace(**hour).isoformat()


@pytest.mark.long
@given(instants(YEAR_1972), ZONES)
@example(datetime(1990, 10, 28, 2, 45, tzinfo=UTC), ZoneInfo("America/St_Johns"))  # 00:01 -> 23:01
def test_day_of_an_instant_is_the_latest_date_that_the_clock_has_shown(at: datetime, zone: ZoneInfo) -> None:
    (bucket,) = buckets(TimeRange(at, at + MICROSECOND), "day", zone)
    earlier = (at.replace(second=0, microsecond=0) - minutes * MINUTE for minutes in range(26 * 60))
    latest = max(each.astimezone(zone).date() for each in (at, *earlier))
    assert bucket.label == latest.isoformat()


@given(instants(), ZONES)
def test_week_begins_with_the_monday_and_month_with_the_first_of_its_days(at: datetime, zone: ZoneInfo) -> None:
    moment = TimeRange(at, at + MICROSECOND)
    (day,), (week,), (month,) = (buckets(moment, interval, zone) for interval in ("day", "week", "month"))
    date = datetime.fromisoformat(day.label).date()
    assert week.label == (date - date.weekday() * DAY).isoformat()
    assert month.label == date.replace(day=1).isoformat()
    for bucket in (week, month):
        first = buckets(TimeRange(instant(bucket), instant(bucket) + MICROSECOND), "day", zone)
        assert first[0].start_s == bucket.start_s


def test_days_on_which_daylight_saving_time_changes_have_23_and_25_hours() -> None:
    assert hours(of("2026-03-28", "2026-03-31", "day", "Europe/Berlin")) == [24, 23]
    assert hours(of("2026-10-24", "2026-10-27", "day", "Europe/Berlin")) == [24, 25]


def test_repeated_hour_is_two_buckets_and_a_skipped_hour_has_none() -> None:
    assert labels(of("2026-10-25T00:00Z", "2026-10-25T02:00Z", "hour", "Europe/Berlin")) == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
    ]
    assert labels(of("2026-03-29T00:00Z", "2026-03-29T02:00Z", "hour", "Europe/Berlin")) == [
        "2026-03-29T01:00:00+01:00",
        "2026-03-29T03:00:00+02:00",
    ]


def test_change_of_half_an_hour_begins_an_hour() -> None:
    result = of("2026-04-04T14:00Z", "2026-04-04T16:30Z", "hour", "Australia/Lord_Howe")
    assert labels(result) == ["2026-04-05T01:00:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T02:00:00+10:30"]
    assert hours(result) == [1, 0.5]


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        ("America/Sao_Paulo", "2018-11-03", "2018-11-04T03:00:00+00:00"),  # 00:00 -> 01:00
        ("America/Toronto", "1919-03-30", "1919-03-31T04:30:00+00:00"),  # 23:30 -> 00:30
        ("America/Havana", "2026-10-31", "2026-11-01T04:00:00+00:00"),  # 01:00 -> 00:00: midnight twice
        ("America/Asuncion", "2024-03-23", "2024-03-24T04:00:00+00:00"),  # 00:00 -> 23:00
    ],
)
def test_day_begins_at_midnight_or_where_the_clock_skips_midnight(zone: str, start: str, expected: str) -> None:
    following = datetime.fromisoformat(start) + 2 * DAY
    assert instant(of(start, following.isoformat(), "day", zone)[1]).isoformat() == expected


def test_skipped_day_has_no_bucket() -> None:
    assert labels(of("2011-12-29", "2012-01-01", "day", "Pacific/Apia")) == ["2011-12-29", "2011-12-31"]


def test_range_inside_of_a_bucket_has_the_start_of_the_bucket() -> None:
    assert labels(of("2026-09-16T12:00", "2026-09-16T12:01", "week")) == ["2026-09-14"]
    assert labels(of("2026-12-31", "2027-01-01T00:00:00.000001", "month")) == ["2026-12-01", "2027-01-01"]


@pytest.mark.parametrize("interval", INTERVALS)
def test_range_without_an_instant_has_no_bucket(interval: str) -> None:
    assert of("2026-09-16", "2026-09-16", interval) == of("2026-09-16", "2026-09-15", interval) == []


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_first_and_last_instant_of_the_calendar_have_a_bucket(interval: str, zone: str) -> None:
    for start, end in ((FIRST, FIRST + HOUR), (LAST, LAST + 23 * HOUR)):
        assert buckets(TimeRange(start, end), interval, ZoneInfo(zone))


def test_number_of_buckets_is_limited() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    longest = TimeRange(start, start + BUCKETS_MAX * HOUR)
    assert len(buckets(longest, "hour", ZoneInfo("UTC"))) == BUCKETS_MAX
    with pytest.raises(TooManyBuckets, match="more than 10,000 buckets of one hour"):
        buckets(TimeRange(start, longest.end + MICROSECOND), "hour", ZoneInfo("UTC"))
    with pytest.raises(TooManyBuckets, match="more than 10,000 buckets of one day"):
        buckets(TimeRange(FIRST, LAST), "day", ZoneInfo("UTC"))
