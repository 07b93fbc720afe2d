"""The sample log of `demo`, with recent days."""

import re
from datetime import date, datetime, timedelta
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "sample_data" / "access.log"
ROBOTS = SAMPLE.with_name("robots.txt")
"""The robots.txt of the sample site."""
LAST_DAY = date(2026, 9, 30)
"""Last whole day of the sample log, in UTC."""
_DAY = re.compile(rb"\[(\d\d/[A-Z][a-z]{2}/\d{4}):")
_FORMAT = "%d/%b/%Y"


def write_recent(target: Path, today: date) -> None:
    """Write the sample log with all days moved by the same number, so that its last whole day is yesterday.

    Pages of the last 30 days then show all of it.
    """
    moved = today - timedelta(days=1) - LAST_DAY
    target.write_bytes(_DAY.sub(lambda match: _moved(match[1], moved), SAMPLE.read_bytes()))


def _moved(day: bytes, moved: timedelta) -> bytes:
    try:
        moved_day = datetime.strptime(day.decode(), _FORMAT) + moved  # noqa: DTZ007  # a day has no zone
    except ValueError:  # one of the sample's malformed lines
        return b"[" + day + b":"
    return f"[{moved_day:{_FORMAT}}:".encode()
