"""Settings of all tests."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.night
def test_end_of_the_tests_lists_no_leaks_of_duckdb() -> None:
    """Run tests that use Hypothesis and tests that use DuckDB: the two together were listed."""
    folder = Path(__file__).parent / "warehouse" / "query"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder / "test_time_range.py"]
    ended = subprocess.run([*command, folder / "test_sql.py"], capture_output=True, text=True, check=True)
    assert "leaked" not in ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("Random order of the tests")
