"""Settings of all tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import rounds

FILE = """
import pytest

@pytest.mark.long
@pytest.mark.parametrize("case", range(100))
def test_long(case):
    pass

def test_short():
    pass
"""
ROOT = Path(__file__).parents[1]


def passed(folder: Path, part: str | None) -> set[str]:
    """Return the names of the tests that pass in a run of the folder with this part."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.rounds", "-rp", "--rootdir", folder, folder]
    environ = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    environ |= {"READERSHIP_TEST_PART": part} if part else {}
    ended = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=True)
    return {line.removeprefix("PASSED ") for line in ended.stdout.splitlines() if line.startswith("PASSED ")}


@pytest.mark.night
def test_end_of_the_tests_lists_no_leaks_of_duckdb() -> None:
    """Run tests that use Hypothesis and tests that use DuckDB: the two together were listed."""
    folder = Path(__file__).parent / "warehouse" / "query"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder / "test_time_range.py"]
    ended = subprocess.run([*command, folder / "test_sql.py"], capture_output=True, text=True, check=True)
    assert "leaked" not in ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("Random order of the tests")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in (tmp_path / "tests" / "api" / "test_some.py", tmp_path / "tests" / "promises" / "test_one.py"):
        file.parent.mkdir(parents=True)
        file.write_text(FILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long\naddopts = --import-mode=importlib\n")
    return tmp_path


@pytest.mark.long
def test_parts_together_have_each_long_test_once_and_those_of_promises_in_each(folder: Path) -> None:
    every = passed(folder, None)
    assert len(every) == 202
    runs = [passed(folder, f"{number}/3") for number in range(3)]
    always = {test for test in every if "promises" in test or "short" in test}
    assert set.intersection(*runs) == always
    divided = [run - always for run in runs]
    assert all(20 < len(run) < 50 for run in divided)
    assert sum(map(len, divided)) == 100
    assert set.union(*runs) == every


@pytest.mark.parametrize("part", ["5/5", "-1/5"])
def test_number_of_a_part_that_does_not_exist_is_an_error(part: str) -> None:
    with pytest.raises(ValueError, match="expected a number from 0 to 4"):
        rounds.is_in(part, "tests/test_wheel.py::test_the_demo_runs")


def test_folders_and_files_exist() -> None:
    assert [path for path in (*rounds.EVERY_RUN, rounds.DIVIDED) if not (ROOT / path).exists()] == []
