"""Run the long checks one after another: `python -m tests.night [STEP ...]`, all of them without a name.

The output of each step is in `build/night/STEP.log`. The exit status is 1 if a step has the result FAULT.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from api.cli.output import table

LOGS = Path("build/night")
PYTHONS = [f"python3.{minor}" for minor in (11, 12, 13) if minor != sys.version_info.minor]
"""Programs of the other versions of Python that `make` accepts. One that is not installed is named as not run."""


@dataclass(frozen=True)
class Step:
    """A command with its time limit in hours. It is not run if the program `needs` is not installed."""

    command: Sequence[str]
    hours_max: float
    environ: Mapping[str, str] = field(default_factory=dict)
    needs: str | None = None


@dataclass(frozen=True)
class Outcome:
    """Result of a step: `ok`, `FAULT` or `not run`, its duration in minutes, and the last line of its output."""

    name: str
    result: str
    minutes: float | None
    last_line: str


def steps(seed: int) -> dict[str, Step]:
    """Return all steps by name; random ones use the seed."""
    python = sys.executable
    new_seeds = {"CI": "true", "READERSHIP_TEST_ROUNDS": "1", "READERSHIP_TEST_SEED": str(seed)}
    simulation = [python, "-m", "tests.simulation", "--seed", str(seed % 1_000_000)]
    paths = python, "-m", "benchmarks.attacks.long_paths"
    return {
        "tests": Step(["make", "test", "TESTS="], 2, new_seeds),
        "unmarked": Step([python, "-m", "pytest", "-p", "tests.processor_time", "-m", "not long and not night"], 1),
        "clock": Step(["make", "clock", "DAYS=60"], 1),
        "cluster": Step([python, "-m", "tests.cluster.rounds", "--rounds", "30", "--seed", str(seed)], 1),
        "simulation": Step([*simulation, "--steps", "700000"], 3),
        "simulation-nodes": Step([*simulation, "--steps", "300000", "--nodes", "2"], 3),
        "fuzzing": Step([python, "-m", "tests.fuzzing", "--seconds", "600", "--seed", str(seed)], 2),
        "paths": Step([*paths, "build/night/paths", "--paths", "50000", "--length", "2000", "--days", "1"], 1),
        "many-paths": Step(
            [*paths, "build/night/many-paths", "--paths", "2000000", "--length", "200", "--days", "20"], 2
        ),
        "soak": Step([python, "-m", "tests.night.soak", "--minutes", "60"], 1.5),
        "mutants": Step([python, "-m", "tests.night.mutants", "--number", "100", "--seed", str(seed)], 3),
        "coverage": Step([python, "-m", "tests.night.covered"], 2),
        "benchmarks": Step([python, "-m", "tests.night.slower"], 2),
        **{name: Step(_in_clone(name), 1, needs=name) for name in PYTHONS},
    }


def main() -> int:
    seed = random.SystemRandom().randrange(2**32)
    known = steps(seed)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="STEP", help=", ".join(known))
    names = parser.parse_args().names or list(known)
    if unknown := set(names) - set(known):
        parser.error(f"there is no step {', '.join(sorted(unknown))}; the steps are {', '.join(known)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}", flush=True)
    outcomes = [_run(name, known[name]) for name in names]
    rows = [
        (each.name, each.result, "-" if each.minutes is None else f"{each.minutes:.1f}", each.last_line)
        for each in outcomes
    ]
    Console().print(table(("step", "result", "minutes", "last line"), rows, title=f"seed {seed}"))
    return 1 if any(each.result == "FAULT" for each in outcomes) else 0


def _run(name: str, step: Step) -> Outcome:
    if step.needs and not _is_installed(step.needs):
        return Outcome(name, "not run", None, f"{step.needs} is not installed")
    path = LOGS / f"{name}.log"
    print(f"{time.strftime('%H:%M')} {name}, output in {path}", flush=True)
    began = time.monotonic()
    with path.open("wb") as log:
        environ = {**os.environ, **step.environ}
        process = subprocess.Popen(step.command, stdout=log, stderr=log, env=environ, start_new_session=True)
        try:
            is_ok = process.wait(step.hours_max * 3600) == 0
        except subprocess.TimeoutExpired:
            is_ok = False
            log.write(f"\nended after its time limit of {step.hours_max:g} h\n".encode())
        finally:
            _end(process)
    lines = path.read_text(errors="replace").strip().splitlines()
    return Outcome(name, "ok" if is_ok else "FAULT", (time.monotonic() - began) / 60, lines[-1][:120] if lines else "")


def _is_installed(program: str) -> bool:
    """Return whether a program runs: pyenv has one in PATH also for a version that it does not use."""
    found = shutil.which(program)
    return found is not None and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the session of a step that is still running."""
    if process.poll() is None:
        os.killpg(process.pid, 15)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def _in_clone(python: str) -> list[str]:
    """Return a command that runs `make test` of the newest commit in a clone, with another version of Python."""
    clone = 'folder=$(mktemp -d); trap "rm -rf $folder" EXIT; git clone -q . "$folder"'
    return ["bash", "-c", f'set -e; {clone}; make -C "$folder" PYTHON="$0" test', python]


if __name__ == "__main__":
    sys.exit(main())
