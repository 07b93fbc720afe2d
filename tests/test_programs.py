"""Tests that need a program which is not installed are skipped and counted, and fail in CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import PACKAGES, PREFERRED, find, shortfall
from tests.warehouse.site import ROOT

CONFTEST = """
from tests import programs
from tests.programs import pytest_runtest_setup, pytest_terminal_summary

programs.POSTGRESQL_FOLDERS.clear()
"""
BY_CALL = """
import pytest
from tests.programs import require, skip

@pytest.fixture(scope="module")
def box():
    require("bwrap")

def test_one(box): ...
def test_two(box): ...
def test_three(): require("initdb")
def test_four(): skip("opencode", "npm install opencode-ai")
def test_five(): pytest.skip("only root can become another user")
def test_six(): ...
"""
BY_MARKER = """
import pytest

@pytest.mark.needs("strace", "promtool")
def test_one(): ...
"""
SUMMARY = (
    "5 tests skipped for want of bubblewrap (2), postgresql (1), opencode (1), strace (1): "
    "apt-get install bubblewrap postgresql strace; npm install opencode-ai"
)


def run_pytest(folder: Path, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the tests above on a machine on which no program is installed."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = needs\n")
    (folder / "test_call.py").write_text(BY_CALL)
    (folder / "test_marker.py").write_text(BY_MARKER)
    (folder / "conftest.py").write_text(CONFTEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *options]
    environ = {"PYTHONPATH": str(ROOT), "PATH": str(folder), **environ}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.night
def test_the_line_before_the_last_counts_the_skips_and_names_the_command(tmp_path: Path) -> None:
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-2] == SUMMARY
    assert done.stdout.splitlines()[-1].startswith("1 passed, 6 skipped in ")


@pytest.mark.long
def test_a_program_that_is_not_installed_fails_the_test_in_ci(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, CI="true")
    assert done.returncode == 1
    assert "2 failed, 1 passed, 1 skipped, 3 errors" in done.stdout
    assert "needs bubblewrap: apt-get install bubblewrap" in done.stdout
    assert "for want of" not in done.stdout


def test_no_line_is_printed_without_such_a_skip() -> None:
    assert shortfall(["Skipped: only root can become another user"]) is None


def test_the_command_for_ci_prints_each_missing_package_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.programs"]
    printed = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    ).stdout.split()
    assert (set(PACKAGES.values()) | set(PREFERRED.values())) - {"postgresql"} <= set(printed)
    assert len(printed) == len(set(printed))


def test_the_shell_of_chromium_is_used_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find("chromium") is None
    for name in ("chromium", "chromium-headless-shell"):
        (tmp_path / name).touch(mode=0o755)
        assert find("chromium") == tmp_path / name
