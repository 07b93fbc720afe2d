"""Processor time of each test and its children. `pytest -p tests.processor_time FILE...` lists those of LONG_S or more.

Such a test has the marker `long`, unless it is the main test of a promise; the last line names the others. The start of
a shared fixture counts for no test. With pytest-xdist nothing is listed.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.promises import DOCS, README

LONG_S = 0.5
PROMISES = {f"tests/{test}" for tests in (README | DOCS).values() for test in tests}
_seconds: dict[str, float] = {}
_before_teardown_s = _shared_s = 0.0
"""Time of this process and its children before the fixtures of the test ended: killed services leave no times."""


def _used_s(process: str) -> float:
    """Return the processor time of a process and of all that it has started, as far as they live or were waited for."""
    try:
        fields = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
        lists = [file.read_text() for file in Path("/proc", process, "task").glob("*/children")]
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(_used_s, " ".join(lists).split()))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _shared_s
    before_s, _shared_s = _used_s(str(os.getpid())), 0.0
    result = yield
    name = item.nodeid + (" (long)" if item.get_closest_marker("long") else "")
    _seconds[name] = max(_before_teardown_s, _used_s(str(os.getpid()))) - before_s - _shared_s
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
    global _shared_s  # noqa: PLW0603
    before_s = _used_s(str(os.getpid()))
    result = yield
    if fixturedef.scope != "function":
        _shared_s += _used_s(str(os.getpid())) - before_s
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    global _before_teardown_s  # noqa: PLW0603  # hooks of a module have no other state
    _before_teardown_s = _used_s(str(os.getpid()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, seconds in sorted(_seconds.items(), key=lambda each: -each[1]):
        if seconds >= LONG_S:
            terminalreporter.write_line(f"{seconds:7.2f} s {name}")
    terminalreporter.write_line(f"{sum(_seconds.values()):7.2f} s {len(_seconds)} tests")


def pytest_unconfigure() -> None:
    if _seconds:
        print(unmarked(_seconds))


def unmarked(seconds: Mapping[str, float]) -> str:
    """Return a line that names the tests that should have the marker `long`."""
    slow = [name for name, each_s in seconds.items() if each_s >= LONG_S and not name.endswith("(long)")]
    names = [name for name in slow if name.partition("[")[0] not in PROMISES]
    return f"{len(names)} tests of {LONG_S} s or more lack the marker long: {' '.join(names)}"
