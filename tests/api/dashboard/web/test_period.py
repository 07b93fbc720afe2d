"""The period of a page: presets, custom days, time zones with daylight saving, and comparisons."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from api.dashboard.web import period
from api.dashboard.web.period import Period
from warehouse.query.time_range import FIRST

NOW = datetime(2026, 11, 22, 23, 30, tzinfo=UTC)
BERLIN, UTC_ZONE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")


def parse(zone: ZoneInfo = UTC_ZONE, **values: str) -> tuple[Period, list[str]]:
    faults: list[str] = []
    return period.parse({name.removesuffix("_"): value for name, value in values.items()}, zone, NOW, faults), faults


def test_presets_include_today() -> None:
    today = date(2026, 11, 22)
    for name, first, last, interval in (
        ("today", today, today, "hour"),
        ("yesterday", date(2026, 11, 21), date(2026, 11, 21), "hour"),
        ("7d", date(2026, 11, 16), today, "day"),
        ("30d", date(2026, 10, 24), today, "day"),
        ("90d", date(2026, 8, 25), today, "day"),
        ("12mo", date(2025, 12, 1), today, "week"),
        ("all", None, today, "month"),
    ):
        chosen, faults = parse(period=name)
        assert (chosen.first, chosen.last, chosen.interval, faults) == (first, last, interval, [])


@pytest.mark.parametrize(
    ("first_view", "values", "expected"),
    [
        (datetime(2026, 11, 22, 20, 10, tzinfo=UTC), {}, ("new", datetime(2026, 11, 22, 19, 30, tzinfo=UTC), "hour")),
        (datetime(2026, 11, 20, 23, 31, tzinfo=UTC), {}, ("new", datetime(2026, 11, 20, 23, 30, tzinfo=UTC), "hour")),
        (datetime(2026, 11, 20, 23, 31, tzinfo=UTC), {"interval": "day"}, ("new", None, "day")),
        (datetime(2026, 11, 20, 23, 30, tzinfo=UTC), {}, ("30d", None, "day")),
        (datetime(2026, 11, 22, 20, tzinfo=UTC), {"period": "7d"}, ("7d", None, "day")),
        (datetime(2026, 11, 22, 20, tzinfo=UTC), {"from": "2026-11-22", "to": "2026-11-22"}, ("custom", None, "hour")),
        (None, {}, ("30d", None, "day")),
    ],
    ids=str,
)
def test_new_site_opens_on_the_hours_since_its_first_view(
    first_view: datetime | None, values: dict[str, str], expected: tuple[str, datetime | None, str]
) -> None:
    name, start, interval = expected
    chosen = period.parse(values, ZoneInfo("Asia/Kolkata"), NOW, [], first_view)
    assert (chosen.name, chosen.interval, start or chosen.start) == (name, interval, chosen.start)
    assert name != "new" or (chosen.step(-1), chosen.step(1), chosen.previous(NOW)) == (None, None, None)


def test_today_is_that_of_the_zone() -> None:
    chosen, _ = parse(BERLIN, period="today")
    assert (chosen.first, chosen.start, chosen.end) == (
        date(2026, 11, 23),
        datetime(2026, 11, 22, 23, tzinfo=UTC),
        None,
    )


def test_all_time_has_no_first_day_and_no_previous_period() -> None:
    chosen, _ = parse(period="all")
    assert (chosen.start, chosen.end, chosen.previous(NOW)) == (FIRST, None, None)


def test_closed_period_ends_at_the_midnight_after_its_last_day() -> None:
    chosen, _ = parse(BERLIN, from_="2026-10-25", to="2026-10-25")
    assert (chosen.start, chosen.end) == (
        datetime(2026, 10, 24, 22, tzinfo=UTC),
        datetime(2026, 10, 25, 23, tzinfo=UTC),  # a day of 25 hours
    )


def test_period_until_now_is_compared_up_to_the_same_time_of_day() -> None:
    before = parse(period="7d")[0].previous(NOW)
    assert before is not None
    assert (before.first, before.last) == (date(2026, 11, 9), date(2026, 11, 15))
    assert (before.start, before.end) == (datetime(2026, 11, 9, tzinfo=UTC), datetime(2026, 11, 15, 23, 30, tzinfo=UTC))


def test_closed_period_is_compared_with_the_whole_period_before() -> None:
    before = parse(from_="2026-09-01", to="2026-09-10")[0].previous(NOW)
    assert before is not None
    assert (before.start, before.end) == (datetime(2026, 8, 22, tzinfo=UTC), datetime(2026, 9, 1, tzinfo=UTC))


def test_previous_period_ends_at_the_same_time_of_the_clock_in_summer() -> None:
    now = datetime(2026, 10, 27, 23, 30, tzinfo=UTC)  # 00:30 in Berlin, where summer time ended on 25 October
    before = period.parse({"period": "7d"}, BERLIN, now, []).previous(now)
    assert before is not None
    assert before.end == datetime(2026, 10, 20, 22, 30, tzinfo=UTC)


def test_last_12_months_are_compared_with_the_same_days_a_year_before() -> None:
    before = parse(period="12mo", interval="month")[0].previous(NOW)
    assert before is not None
    assert (before.start, before.end) == (datetime(2024, 12, 1, tzinfo=UTC), datetime(2025, 11, 22, 23, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("values", "first", "last"),
    [
        ({"period": "12mo"}, date(2024, 12, 2), date(2025, 11, 23)),  # 364 days before
        ({"from_": "2026-04-20", "to": "2026-11-15"}, date(2025, 9, 22), date(2026, 4, 19)),  # 210 days
        ({"from_": "2026-04-22", "to": "2026-11-15"}, date(2025, 9, 24), date(2026, 4, 19)),  # 208 days
        ({"period": "30d", "interval": "week"}, date(2026, 9, 19), date(2026, 10, 18)),
    ],
)
def test_previous_period_by_week_begins_on_the_same_weekday(values: dict[str, str], first: date, last: date) -> None:
    chosen = parse(**values)[0]
    before = chosen.previous(NOW)
    assert before is not None
    assert (chosen.interval, before.first, before.last) == ("week", first, last)
    assert chosen.first is not None
    assert (chosen.first - first).days % 7 == 0
    assert last < chosen.first


def test_previous_period_of_a_closed_chart_by_week_ends_with_its_last_day() -> None:
    before = parse(BERLIN, from_="2026-04-22", to="2026-11-15")[0].previous(NOW)
    assert before is not None
    assert (before.last, before.end) == (date(2026, 4, 19), datetime(2026, 4, 19, 22, tzinfo=UTC))


def test_last_day_in_the_future_is_today() -> None:
    chosen, faults = parse(from_="2026-11-20", to="2027-01-01")
    assert (chosen.last, chosen.end, faults) == (date(2026, 11, 22), None, [])


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"period": "fortnight"}, "There is no period “fortnight”"),
        ({"from_": "2026-13-01"}, "“2026-13-01” is not a day such as 2026-09-01"),
        ({"from_": "1969-01-01"}, "“1969-01-01” is not a day such as 2026-09-01"),
        ({"from_": "2026-09-02", "to": "2026-09-01"}, "The first day, 2026-09-02, is after the last day, 2026-09-01"),
        ({"from_": "2026-11-23", "to": "2026-11-24"}, "The first day, 2026-11-23, is in the future"),
    ],
)
def test_invalid_period_is_named_and_replaced(values: dict[str, str], fault: str) -> None:
    chosen, faults = parse(**values)
    assert (chosen.name, chosen.days, faults) == ("30d", 30, [f"{fault}; these are the last 30 days."])


def test_unknown_interval_is_named_and_replaced() -> None:
    chosen, faults = parse(period="7d", interval="minute")
    assert (chosen.interval, faults) == ("day", ["There is no interval “minute”: the chart is by day."])


def test_interval_with_too_many_points_is_replaced() -> None:
    chosen, faults = parse(period="12mo", interval="hour")
    assert (chosen.interval, chosen.intervals, faults) == ("week", ("day", "week", "month"), [])


@pytest.mark.parametrize(
    ("values", "first", "last", "before", "after"),
    [
        ({"period": "day", "date": "2026-09-01"}, date(2026, 9, 1), date(2026, 9, 1), "2026-08-31", "2026-09-02"),
        ({"period": "week", "date": "2026-09-03"}, date(2026, 8, 31), date(2026, 9, 6), "2026-08-30", "2026-09-07"),
        ({"period": "month", "date": "2026-02-28"}, date(2026, 2, 1), date(2026, 2, 28), "2026-01-31", "2026-03-01"),
        ({"period": "year", "date": "2024-02-29"}, date(2024, 1, 1), date(2024, 12, 31), "2023-12-31", "2025-01-01"),
        ({"period": "month"}, date(2026, 11, 1), date(2026, 11, 22), "2026-10-31", None),
    ],
)
def test_calendar_period_contains_its_date_and_has_neighbours(
    values: dict[str, str], first: date, last: date, before: str, after: str | None
) -> None:
    chosen, faults = parse(**values)
    assert (chosen.first, chosen.last, faults) == (first, last, [])
    assert chosen.step(-1) == {"period": values["period"], "date": before}
    assert chosen.step(1) == (None if after is None else {"period": values["period"], "date": after})


def test_neighbours_of_other_periods_have_as_many_days() -> None:
    assert parse(period="7d")[0].step(-1) == {"period": "custom", "from": "2026-11-09", "to": "2026-11-15"}
    assert parse(period="7d")[0].step(1) is None
    assert parse(period="yesterday")[0].step(1) == {"period": "day", "date": "2026-11-22"}
    chosen = parse(from_="2026-09-01", to="2026-09-10")[0]
    assert chosen.step(1) == {"period": "custom", "from": "2026-09-11", "to": "2026-09-20"}
    assert parse(period="all")[0].step(-1) is None
    assert parse(from_="2000-01-01", to="2000-01-02")[0].step(-1) is None


def test_month_is_compared_with_the_month_before() -> None:
    before = parse(period="month", date="2026-03-31")[0].previous(NOW)
    assert before is not None
    assert (before.start, before.end) == (datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC))
    before = parse(period="month")[0].previous(NOW)
    assert before is not None
    assert (before.start, before.end) == (datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 10, 22, 23, 30, tzinfo=UTC))


def test_calendar_period_in_the_future_is_a_fault() -> None:
    chosen, faults = parse(period="month", date="2027-01-01")
    assert (chosen.name, len(faults)) == ("30d", 1)
