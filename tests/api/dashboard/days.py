"""Days before today, computed when they are used: the tests of a run can begin before midnight and end after it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta


def today() -> date:
    return datetime.now(UTC).date()


def before(days: int) -> str:
    """Return the day this number of days before today."""
    return str(today() - timedelta(days))


def with_days(values: Mapping[str, str | int]) -> dict[str, str]:
    """Return the values with each number replaced by the day this number of days before today."""
    return {name: before(value) if isinstance(value, int) else value for name, value in values.items()}
