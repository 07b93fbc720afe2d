"""A step of `make night` whose program is not installed is not run, and one that ends with an error is a fault."""

from pathlib import Path

import pytest

from tests import processor_time
from tests.night.__main__ import LOGS, Step, _run


def test_slow_test_without_the_marker_long_is_named_unless_it_is_of_a_promise() -> None:
    promise = min(processor_time.PROMISES)
    seconds = {"a.py::quick": 0.4, "a.py::slow[x]": 0.5, "b.py::slow (long)": 9.0, promise: 3.0, f"{promise}[x]": 3.0}
    assert processor_time.unmarked(seconds) == "1 tests of 0.5 s or more lack the marker long: a.py::slow[x]"


@pytest.mark.parametrize(
    ("program", "result"),
    [(None, "not run"), ("exit 127", "not run"), ("exit 0", "ok"), ('[ "$1" = --version ]', "FAULT")],
)
def test_step_is_run_if_its_program_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None, result: str
) -> None:
    monkeypatch.chdir(tmp_path)
    LOGS.mkdir(parents=True)
    path = tmp_path / "python3.12"
    if program:
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
    outcome = _run("a step", Step([str(path)], 0.01, needs=str(path)))
    assert outcome.result == result
    assert (outcome.minutes is None) == (result == "not run")
