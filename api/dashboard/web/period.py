"""The period of a page: its days in the viewer's time zone, and the interval of its chart."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from warehouse.query.time_range import FIRST
from warehouse.report.time_buckets import INTERVALS

PRESETS = {
    "today": "Today",
    "yesterday": "Yesterday",
    "week": "This week",
    "month": "This month",
    "year": "This year",
    "7d": "Last 7 days",
    "30d": "Last 30 days",
    "90d": "Last 90 days",
    "12mo": "Last 12 months",
    "all": "All time",
}
"""Names of the periods in addresses, and as the pages show them."""
KEYS = {"today": "D", "week": "W", "month": "M", "year": "Y"}
"""Keys that open a period, as in Plausible."""
CALENDAR = ("day", "week", "month", "year")
"""Names of the periods that contain the parameter `date`, which is today by default."""
CUSTOM, DEFAULT, YEAR = "custom", "30d", "12mo"
NEW, NEW_HOURS = "new", 48
"""Name of the period since the first view, on which the pages of a site open in its first hours."""
DAYS = {"today": 1, "7d": 7, "30d": 30, "90d": 90}
"""Numbers of days of the presets that end today."""
MONTHS = 12
INTERVAL_DAYS_MAX = {"hour": 31, "day": 800, "week": 4_000, "month": 100_000}
"""Maximum length of a period whose chart may have this interval, in days."""
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2100, 12, 31)
"""Limits of the days of a custom period."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """Days `first` to `last`, both included, of a time zone.

    `start` and `end` are in UTC. `end` is not included, and is None for a period that ends now. `first` is None for all
    time. `interval` is that of the chart.
    """

    name: str
    first: date | None
    last: date
    zone: ZoneInfo
    interval: str
    start: datetime
    end: datetime | None

    @property
    def days(self) -> int | None:
        """Return the number of days; None for all time."""
        return None if self.first is None else (self.last - self.first).days + 1

    @property
    def intervals(self) -> tuple[str, ...]:
        """Return the intervals that the chart of this period can have."""
        return tuple(name for name in INTERVALS if (self.days or 3_650) <= INTERVAL_DAYS_MAX[name])

    def step(self, direction: Literal[-1, 1]) -> dict[str, str] | None:
        """Return the parameters of the period directly before or after this one; None if there is none."""
        if self.first is None or self.name == NEW or (direction > 0 and self.end is None):
            return None
        day = self.first - _DAY if direction < 0 else self.last + _DAY
        if not FIRST_DAY <= day <= LAST_DAY:
            return None
        if self.name in CALENDAR or self.first == self.last:
            return {"period": self.name if self.name in CALENDAR else "day", "date": day.isoformat()}
        other = max(day + direction * (self.last - self.first), FIRST_DAY)
        first, last = sorted((day, other))
        return {"period": CUSTOM, "from": first.isoformat(), "to": last.isoformat()}

    def previous(self, now: datetime) -> "Period | None":
        """Return the period with which this period is compared: the period of the same length directly before it, the
        calendar month or year before it, or for the last 12 months the period that begins a year earlier. Return None
        for all time.

        If this period ends now, the previous one ends at the same time of its last day.

        In a chart by week, both periods begin on the same weekday, so that each week is compared with a week of as many
        days: up to six days lie between the periods. The last 12 months are compared with the days 52 weeks before.
        """
        length = self.days
        if self.first is None or length is None or self.name == NEW:
            return None
        if self.name in CALENDAR:
            length = (self.first - _calendar(self.name, self.first - _DAY)[0]).days
        # Of the last 12 months, a chart compares each month with the same month a year earlier.
        days = length if self.name != YEAR else (self.first - self.first.replace(year=self.first.year - 1)).days
        if self.interval == "week":
            days = max(days - days % 7, length + -length % 7)
        first, last = self.first - days * _DAY, self.last - days * _DAY
        if self.name in CALENDAR:
            last = self.first - _DAY if self.end is not None else min(last, self.first - _DAY)
        local = now.astimezone(self.zone)
        same_time = datetime.combine(local.date() - days * _DAY, local.timetz()).astimezone(UTC)
        end = same_time if self.end is None else _midnight(last + _DAY, self.zone)
        return replace(self, first=first, last=last, start=_midnight(first, self.zone), end=min(end, self.start))


def parse(
    values: Mapping[str, str], zone: ZoneInfo, now: datetime, faults: list[str], first_view: datetime | None = None
) -> Period:
    """Return the period of the query parameters `period`, `from`, `to` and `interval`.

    An invalid value adds a sentence to `faults` and is replaced by the default. Without parameters, the period of a
    site in its first NEW_HOURS begins with the hour of its first view.
    """
    if first_view and not {"period", "from", "to"} & values.keys() and now - first_view < timedelta(hours=NEW_HOURS):
        hour = first_view.astimezone(zone).replace(minute=0, second=0, microsecond=0)
        new = Period(NEW, hour.date(), now.astimezone(zone).date(), zone, "hour", hour.astimezone(UTC), None)
        return replace(new, interval=_interval(values, new, faults))
    today = now.astimezone(zone).date()
    name = values.get("period", CUSTOM if "from" in values or "to" in values else DEFAULT)
    days: tuple[date | None, date] | None = None
    if name == CUSTOM:
        days = _custom(values, today, faults)
    elif name in CALENDAR:
        day = _day(values, "date", today, faults)
        days = _past(_calendar(name, day), today, faults) if day else None
    elif name in PRESETS:
        days = _preset(name, today)
    else:
        faults.append(f"There is no period “{name[:40]}”; these are the last 30 days.")
    if days is None:
        name, days = DEFAULT, _preset(DEFAULT, today)
    first, last = days
    start = FIRST if first is None else _midnight(first, zone)
    end = None if last >= today else _midnight(last + _DAY, zone)
    period = Period(name, first, last, zone, "day", start, end)
    return replace(period, interval=_interval(values, period, faults))


def _preset(name: str, today: date) -> tuple[date | None, date]:
    if name == "all":
        return None, today
    if name == "yesterday":
        return today - _DAY, today - _DAY
    if name == YEAR:
        month = today.year * 12 + today.month - MONTHS
        return date(month // 12, month % 12 + 1, 1), today
    return today - (DAYS[name] - 1) * _DAY, today


def _custom(values: Mapping[str, str], today: date, faults: list[str]) -> tuple[date, date] | None:
    first, last = _day(values, "from", today, faults), _day(values, "to", today, faults)
    if first is None or last is None:
        return None
    if first > last:
        faults.append(f"The first day, {first}, is after the last day, {last}; these are the last 30 days.")
        return None
    return _past((first, last), today, faults)


def _past(days: tuple[date, date], today: date, faults: list[str]) -> tuple[date, date] | None:
    """Return the first and last day without days in the future. Add a fault if all of them are in the future."""
    first, last = days
    if first > today:
        faults.append(f"The first day, {first}, is in the future; these are the last 30 days.")
        return None
    return first, min(last, today)


def _calendar(name: str, day: date) -> tuple[date, date]:
    """Return the first and last day of the period of CALENDAR that contains a day. A week begins on Monday."""
    if name == "year":
        return date(day.year, 1, 1), date(day.year, 12, 31)
    if name == "month":
        first = day.replace(day=1)
        return first, (first + 31 * _DAY).replace(day=1) - _DAY
    monday = day - day.weekday() * _DAY
    return (monday, monday + 6 * _DAY) if name == "week" else (day, day)


def _day(values: Mapping[str, str], name: str, default: date, faults: list[str]) -> date | None:
    text = values.get(name) or default.isoformat()
    if (day := day_of(text)) is None:
        faults.append(f"“{text[:40]}” is not a day such as 2026-09-01; these are the last 30 days.")
    return day


def day_of(text: str) -> date | None:
    """Return the day of a text, from FIRST_DAY to LAST_DAY; None for another text."""
    with suppress(ValueError):
        return day if FIRST_DAY <= (day := date.fromisoformat(text)) <= LAST_DAY else None
    return None


def _interval(values: Mapping[str, str], period: Period, faults: list[str]) -> str:
    name = values.get("interval")
    days = period.days
    short = "day" if days and days > 2 and period.name != NEW else "hour"
    default = "month" if days is None or days > 366 + 31 else "week" if days > 184 else short
    if name is None:
        return default
    if name not in INTERVALS:
        faults.append(f"There is no interval “{name[:40]}”: the chart is by {default}.")
        return default
    return name if name in period.intervals else default


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant of a day in UTC."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)
