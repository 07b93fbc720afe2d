"""Run the tests under coverage.py, and show the lines and branches that nothing runs, and their numbers by package.

`python -m tests.night.covered [ARGUMENT OF PYTEST ...]`. Tracing takes 19 to 67 % more processor time with Python 3.11,
which is why CI does not trace. The services and commands that tests start are traced, too. The last lines of the output
are a table by package.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.test_rooms import PACKAGES

FOLDER = Path("build/coverage")
"""Folder of the data files and of `coverage.json`; the first is also in `pyproject.toml`."""
COUNTS = {"lines": ("covered_lines", "num_statements"), "branches": ("covered_branches", "num_branches")}
TESTS = ("-n", "4", "--dist", "loadfile", "-m", "not night and not installed")


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    status = _coverage("run", "-m", "pytest", *TESTS, *sys.argv[1:])
    file = FOLDER / "coverage.json"
    status = _coverage("combine", "--quiet") or _coverage("json", "--quiet", "-o", str(file)) or status
    files = json.loads(file.read_text())["files"]
    print(*missing(files), "", *summary(files), sep="\n")
    return status


def _coverage(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "coverage", *arguments], check=False).returncode


def missing(files: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each module with lines that no test ran, with their numbers."""
    for path, file in files.items():
        if file["missing_lines"]:
            yield f"{path}: {', '.join(map(str, file['missing_lines']))}"


def summary(files: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table: the share of lines and branches that the tests ran in each package, and in all of them."""
    total: Counter[str] = Counter()
    for package in PACKAGES:
        counts: Counter[str] = Counter()
        for path, file in files.items():
            if path.startswith(f"{package}/"):
                counts.update({name: file["summary"][name] for pair in COUNTS.values() for name in pair})
        total += counts
        yield _row(package, counts)
    yield _row("all", total)


def _row(name: str, counts: Mapping[str, int]) -> str:
    shares = (
        f"{counts[covered] / (counts[every] or 1):6.1%} of {counts[every]:,} {noun}"
        for noun, (covered, every) in COUNTS.items()
    )
    return f"{name:10}{'  '.join(shares)}"


if __name__ == "__main__":
    sys.exit(main())
