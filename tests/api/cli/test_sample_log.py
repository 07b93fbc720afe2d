"""The log that `demo` imports: the sample log with recent days, and otherwise unchanged."""

import re
from datetime import date
from pathlib import Path

import pytest

from api.cli.sample_log import SAMPLE, write_recent

DAY = re.compile(rb"\[(\d\d/\w{3}/\d{4}):")


@pytest.mark.parametrize(
    ("today", "first", "last"),
    [
        (date(2026, 10, 1), b"01/Sep/2026", b"30/Sep/2026"),
        (date(2026, 11, 22), b"23/Oct/2026", b"21/Nov/2026"),
        (date(2028, 3, 1), b"31/Jan/2028", b"29/Feb/2028"),
    ],
)
def test_last_whole_day_is_yesterday(tmp_path: Path, today: date, first: bytes, last: bytes) -> None:
    write_recent(tmp_path / "recent.log", today)
    text, sample = (tmp_path / "recent.log").read_bytes(), SAMPLE.read_bytes()
    days = DAY.findall(text)
    assert (days[0], days.count(last)) == (first, DAY.findall(sample).count(b"30/Sep/2026"))
    assert DAY.sub(b"", text) == DAY.sub(b"", sample)
