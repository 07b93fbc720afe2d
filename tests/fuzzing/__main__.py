"""Fuzz the targets one after another: `python -m tests.fuzzing [TARGET ...] [--seconds 60] [--seed 0]`.

Each target runs in its own process, from its seeds and its corpus. Inputs that reach new code are added to the corpus,
which is then reduced to those that are needed. An input that raises an error is written to `build/fuzzing`, and its
traceback to the output; `python -m tests.fuzzing TARGET --input FILE` repeats it. Seed 0 is a new seed each time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzzing.seeds import SEEDS

CORPUS = Path(__file__).parent / "corpus"
FINDINGS = Path("build/fuzzing")
BYTES_MAX = 4_096
"""Maximum size of an input. What needs more is tested by attacks."""
INPUT_S = 20
"""Time in seconds after which an input is a finding."""
ATHERIS = Path(sys.prefix) / "night"
INSTRUMENTED = {
    "hits": ["ingest.hits"],
    "logs": ["ingest.formats", "ingest.imports"],
    "queries": ["api.http"],
    "requests": ["api.http", "api.routes"],
    "commits": ["warehouse.lake"],
}
"""Packages whose coverage guides the fuzzer, by target. All packages together take a minute to instrument."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", default=[], help=", ".join(SEEDS))
    parser.add_argument("--seconds", type=int, default=60, help="time for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--input", type=Path, help="run the only target once, on this file")
    parser.add_argument("--fuzz", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if unknown := set(chosen.targets) - set(SEEDS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}; the targets are {', '.join(SEEDS)}")
    if not ATHERIS.exists():
        parser.error("atheris is not installed: run `make .venv/.night`")
    if chosen.fuzz is not None:
        _fuzz(chosen.targets[0], chosen.fuzz)
    if chosen.input:
        return _run(chosen.targets[0], [str(chosen.input)])
    failed = [name for name in chosen.targets or SEEDS if not _extend(name, chosen.seconds, chosen.seed)]
    print("\nno fault found" if not failed else f"\nFAULT FOUND: {', '.join(failed)}; see {FINDINGS}")
    return 1 if failed else 0


def _extend(name: str, seconds: int, seed: int) -> bool:
    """Fuzz a target, and reduce its corpus. Return whether there was no fault."""
    print(f"\n=== {name}", flush=True)
    FINDINGS.mkdir(parents=True, exist_ok=True)
    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds"
        grown = Path(folder) / "grown"
        for each in (seeds, grown):
            each.mkdir()
        for number, content in enumerate(SEEDS[name]):
            (seeds / str(number)).write_bytes(content)
        limits = [f"-max_len={BYTES_MAX}", f"-timeout={INPUT_S}", "-rss_limit_mb=4096"]
        options = [*limits, f"-seed={seed}", f"-artifact_prefix={FINDINGS}/{name}-", "-print_final_stats=1"]
        status = _run(name, [str(grown), str(corpus), str(seeds), f"-max_total_time={seconds}", *options])
        _run(name, [str(corpus), str(grown), "-merge=1", *limits])
    return status == 0


def _run(name: str, arguments: list[str]) -> int:
    environ = {**os.environ, "PYTHONPATH": str(ATHERIS)}
    command = [sys.executable, "-m", "tests.fuzzing", name, "--fuzz", *arguments]
    return subprocess.run(command, env=environ, check=False).returncode


def _fuzz(name: str, arguments: list[str]) -> None:
    """Run libFuzzer in this process, which it ends."""
    import atheris  # noqa: PLC0415  # only `make night` installs it

    with atheris.instrument_imports(include=INSTRUMENTED[name], enable_loader_override=False):
        from tests.fuzzing.targets import TARGETS  # noqa: PLC0415  # instruments what it imports
    program = f"{sys.executable} -m tests.fuzzing {name} --fuzz"  # a merge starts it by a shell
    atheris.Setup([program, *arguments], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
