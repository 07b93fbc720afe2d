"""CI runs few failed tests once more, and fails if they fail again, if many failed, or if something else failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import failed_again

pytestmark = pytest.mark.long

FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    ran = Path(__file__).with_suffix(".ran")
    had_run = ran.exists()
    ran.touch()
    assert had_run
"""
FAILS = "def test_fails():\n    assert False\n"
PASSES = "def test_passes():\n    pass\n"


def run_again(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run pytest over files with these texts in an empty folder, and then the failed tests again."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    for number, text in enumerate(tests):
        (folder / f"test_{number}.py").write_text(text)
    # Without the plugins that are not used, a process of pytest takes 0.5 s of processor time instead of 2 s.
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    first = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", "."]
    subprocess.run(first, cwd=folder, env=environ, check=False, capture_output=True)
    command = [sys.executable, failed_again.__file__]
    return subprocess.run(command, cwd=folder, env=environ, check=False, capture_output=True, text=True)


def test_tests_that_fail_once_are_named_and_pass(tmp_path: Path) -> None:
    done = run_again(tmp_path, FAILS_ONCE, PASSES, FAILS_ONCE)
    assert done.returncode == 0
    assert done.stdout.endswith(":\n  test_0.py::test_fails_once\n  test_2.py::test_fails_once\n")
    assert "2 passed" in done.stdout


def test_test_that_fails_again_fails(tmp_path: Path) -> None:
    done = run_again(tmp_path, FAILS_ONCE, FAILS)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "FAILED ONCE" not in done.stdout


def test_file_that_cannot_be_imported_fails(tmp_path: Path) -> None:
    done = run_again(tmp_path, PASSES, "import no_such_module\n")
    assert done.returncode != 0
    assert "FAILED ONCE" not in done.stdout


@pytest.mark.parametrize("failed", [0, failed_again.MAX_FAILED + 1])
def test_nothing_runs_again_without_a_failed_test_or_after_many(tmp_path: Path, failed: int) -> None:
    done = run_again(tmp_path, PASSES, *failed * [FAILS_ONCE])
    assert done.returncode == 1
    assert "passed" not in done.stdout
