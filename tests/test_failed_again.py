"""CI runs few failed tests once more, and fails if they fail again, if many failed, or if something else failed."""

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tests import failed_again

ROOT = Path(__file__).parents[1]
FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    ran = Path(__file__).with_suffix(".ran")
    had_run = ran.exists()
    ran.touch()
    assert had_run
"""
PASSES = "def test_passes():\n    pass\n"


def run_again(folder: Path, *tests: str, files: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run pytest over files with these texts in an empty folder, and then the failed tests again."""
    texts = {"pytest.ini": "[pytest]\n", **{f"test_{number}.py": text for number, text in enumerate(tests)}}
    for name, text in {**texts, **(files or {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    # Without the plugins that are not used, a process of pytest takes 0.5 s of processor time instead of 2 s.
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    first = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", "."]
    subprocess.run(first, cwd=folder, env=environ, check=False, capture_output=True)
    command = [sys.executable, failed_again.__file__]
    return subprocess.run(command, cwd=folder, env=environ, check=False, capture_output=True, text=True)


@pytest.mark.long
def test_tests_that_fail_once_are_named_and_pass(tmp_path: Path) -> None:
    done = run_again(tmp_path, FAILS_ONCE, PASSES, FAILS_ONCE)
    assert done.returncode == 0
    today = datetime.now(UTC).date()
    assert done.stdout.splitlines()[-2:] == [
        f"{today} test_0.py::test_fails_once",
        f"{today} test_2.py::test_fails_once",
    ]
    assert "2 passed" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param(
            {str(failed_again.FAILED_ONCE): "# A comment.\n2026-11-24 test_0.py::test_fails_once\n"},
            "on 2026-11-24",
            id="listed",
            marks=pytest.mark.night,
        ),
        pytest.param(
            {"tests/promises/test_lost.py": FAILS_ONCE}, "tests/promises/test_lost.py::test_fails_once", id="promise"
        ),
    ],
)
def test_nothing_runs_again_for_a_listed_test_or_a_promise(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    done = run_again(tmp_path, FAILS_ONCE, files=files)
    assert done.returncode == 1
    assert done.stdout.startswith("No test runs again:")
    assert reason in done.stdout


def test_listed_tests_and_folders_exist() -> None:
    assert [path for path in failed_again.NEVER if not (ROOT / path).exists()] == []
    listed = failed_again.failed_once((ROOT / failed_again.FAILED_ONCE).read_text().splitlines())
    for test, day in listed.items():
        assert date.fromisoformat(day) >= date(2026, 11, 24)
        path, name = test.split("::")
        assert f"def {name}(" in (ROOT / path).read_text(), f"no such test: delete the line of {test}"


@pytest.mark.night
@pytest.mark.parametrize("failed", [0, failed_again.MAX_FAILED + 1])
def test_nothing_runs_again_without_a_failed_test_or_after_many(tmp_path: Path, failed: int) -> None:
    done = run_again(tmp_path, PASSES, *failed * [FAILS_ONCE])
    assert done.returncode == 1
    assert "passed" not in done.stdout
