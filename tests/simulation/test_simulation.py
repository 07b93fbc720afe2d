"""A short simulation ends without a fault, and with a fault put in on purpose it fails at the same step each time."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = 300
FAULT = "warehouse/maintenance/catch_up.py", "_commit(root, tables[spec], spec, chunk, node)", "pass"
"""A module, a line of it, and a line that commits no hits to the lake, although they are marked as loaded."""


def simulate(root: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation", *map(str, arguments)]
    environ = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.needs("cc")
@pytest.mark.parametrize("nodes", [1, pytest.param(2, marks=pytest.mark.needs("initdb", "setpriv"))])
def test_fixed_seed_finds_no_fault(nodes: int) -> None:
    ended = simulate(ROOT, "--seed", 1, "--steps", STEPS, "--nodes", nodes)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.long
@pytest.mark.needs("cc")
def test_fault_put_in_on_purpose_fails_at_the_same_step_twice(tmp_path: Path) -> None:
    for name in ("api", "ingest", "agent", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "warehouse", tmp_path / "warehouse")  # with its bytecode
    module, line, broken = FAULT
    source = (tmp_path / module).read_text()
    assert source.count(line) == 1
    (tmp_path / module).write_text(source.replace(line, broken))
    first, second = (simulate(tmp_path, "--seed", 1, "--steps", STEPS) for _ in range(2))
    assert first.returncode == second.returncode == 1
    assert "--seed 1 --steps" in first.stdout
    assert steps(first) == steps(second) != []


def steps(failed: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the steps that a failure shows, the number of the last one, and the hash of all."""
    return re.findall(r"^\d+ .*|seed 1, step \d+, trace \w+", failed.stdout, re.MULTILINE)
