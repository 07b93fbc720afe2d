"""A step of `make night` whose program is not installed is not run, and one that ends with an error is a fault."""

from pathlib import Path

import pytest

from tests.night.__main__ import LOGS, Step, _run


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
