"""Run the tests that failed in the last run of pytest once more, alone and one after the other.

`.ci/run` calls it after `make test` has failed. The exit status is 0 if there were at most MAX_FAILED, none of them is
excluded by `_reason`, and all of them pass now. Such a test depends on chance, which is a fault of the test or of the
product: the last thing that is printed is its line for FAILED_ONCE, with which its next failure is an error.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

MAX_FAILED = 3
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
FAILED_ONCE = Path("tests/failed_once.txt")
"""The date and the name, without parameters, of each test that failed and then passed alone."""
NEVER = (
    "tests/promises/", "tests/nodes/", "tests/service/", "tests/simulation/", "tests/agent/service/",
    "tests/agent/test_races.py", "tests/warehouse/consistency/", "tests/ingest/imports/", "tests/ingest/hotlog/",
)  # fmt: skip
"""Tests of stored hits and of jobs: one failure among a thousand runs is a lost hit, and alone there is no race."""


def main() -> int:
    failed = sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if not failed:
        print("No test failed: an earlier step did.")
        return 1
    if len(failed) > MAX_FAILED:
        print(f"{len(failed)} tests failed, more than {MAX_FAILED}: none runs again.")
        return 1
    if reasons := [reason for test in failed if (reason := _reason(test))]:
        print("No test runs again:", *reasons, sep="\n  ")
        return 1
    again = [sys.executable, "-m", "pytest", "--last-failed", "--last-failed-no-failures", "none"]
    if status := subprocess.run(again, check=False).returncode:
        return status
    today = datetime.now(UTC).date()
    lines = dict.fromkeys(f"{today} {_name(test)}" for test in failed)
    print(f"FAILED ONCE, AND PASSED ALONE. Find out why, or add to {FAILED_ONCE}:", *lines, sep="\n")
    return 0


def failed_once(lines: Sequence[str]) -> dict[str, str]:
    """Return the date of each test of FAILED_ONCE."""
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return {test: date for date, test in pairs}


def _reason(test: str) -> str:
    """Return why the test must not run again; empty if it may."""
    if "::" not in test:
        return f"{test} could not be imported, and so other tests did not run"
    if test.startswith(NEVER):
        return f"{test} is one of the tests in which each failure counts"
    listed = failed_once(FAILED_ONCE.read_text().splitlines()) if FAILED_ONCE.exists() else {}
    if date := listed.get(_name(test)):
        return f"{test} failed once already, on {date}. Find the cause, then delete its line of {FAILED_ONCE}"
    return ""


def _name(test: str) -> str:
    return test.partition("[")[0]


if __name__ == "__main__":
    sys.exit(main())
