"""Settings of all tests."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=1)
@given(st.just(0.3))
def test_example_that_takes_0_3_s_passes(duration_s: float) -> None:
    """On a loaded machine, an example of any test may take as long."""
    time.sleep(duration_s)


@pytest.mark.long
def test_order_of_the_tests_is_random_and_the_printed_option_repeats_it() -> None:
    def order(*options: str) -> tuple[list[str], str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", *options, "tests/ingest/hits/test_url.py"]
        ended = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
        tests = [line for line in ended.stdout.splitlines() if "::" in line]
        return tests, next(word for word in ended.stdout.split() if word.startswith("--randomly-seed="))

    first, other = order("--randomly-seed=1")[0], order()
    assert first != other[0]
    assert sorted(first) == sorted(other[0])
    assert order(other[1]) == other


@pytest.mark.long
def test_end_of_the_tests_lists_no_leaks_of_duckdb() -> None:
    """Run tests that use Hypothesis and tests that use DuckDB: the two together were listed."""
    folder = Path(__file__).parent / "warehouse" / "query"
    command = [sys.executable, "-m", "pytest", "-q", folder / "test_time_range.py", folder / "test_sql.py"]
    ended = subprocess.run(command, cwd=folder.parents[2], capture_output=True, text=True, timeout=300, check=True)
    assert "leaked" not in ended.stdout + ended.stderr
