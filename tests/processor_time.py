"""Processor time of each test and its children. `pytest -p tests.processor_time FILE...` lists those of LONG_S or more.

Such a test has the marker `long`, unless it is the main test of a promise. A process that outlives a test, such as a
shared service, counts for the test at whose end it stops. Without pytest-xdist; fixtures count for their first test.
"""

import os
from collections.abc import Iterator

import pytest

LONG_S = 0.5
_seconds: dict[str, float] = {}


def _now_s() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before_s = _now_s()
    result = yield
    name = item.nodeid + (" (long)" if item.get_closest_marker("long") else "")
    _seconds[name] = _now_s() - before_s
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, seconds in sorted(_seconds.items(), key=lambda each: -each[1]):
        if seconds >= LONG_S:
            terminalreporter.write_line(f"{seconds:7.2f} s {name}")
    terminalreporter.write_line(f"{sum(_seconds.values()):7.2f} s {len(_seconds)} tests")
