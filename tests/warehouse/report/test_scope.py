"""The last days of a range end with the range or with the current day."""

from datetime import datetime, timedelta

import pytest

from tests.warehouse.site import DAY, NOON
from warehouse.columns.filters import Filters
from warehouse.query.time_range import FIRST, LAST, TimeRange
from warehouse.report.cells import Scope
from warehouse.report.scope import last_days

MIDNIGHT = NOON - timedelta(hours=12)


@pytest.mark.parametrize(
    ("start", "end", "first"),
    [
        (FIRST, NOON, MIDNIGHT - 6 * DAY),
        (FIRST, MIDNIGHT, MIDNIGHT - 7 * DAY),  # the last instant is on the day before
        (NOON - DAY, NOON, NOON - DAY),
        (FIRST, LAST, MIDNIGHT - 6 * DAY),  # the days of `now`
        (FIRST, FIRST, FIRST),
        (FIRST, FIRST + 2 * DAY, FIRST),
    ],
)
def test_last_days_end_with_the_range_or_now(start: datetime, end: datetime, first: datetime) -> None:
    scope = Scope("site", TimeRange(start, end), Filters())
    assert last_days(scope, NOON, 7).time_range == TimeRange(first, end)
