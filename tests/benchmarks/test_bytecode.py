"""Whether the programs that benchmarks measure cache their bytecode."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_measured_program_caches_its_bytecode_whatever_the_environment_has() -> None:
    code = "import benchmarks, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
    shown = "import sys; print(sys.dont_write_bytecode)"
    command = [sys.executable, "-c", code, shown]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    printed = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout
    assert printed == "False\n"
