"""Run all benchmarks, and name each figure that is worse by a fifth than in the run before on this machine.

`python -m tests.night.slower`. The speed of a machine changes from day to day: a loss is a reason to measure again, old
commit and new in turn. The exit status is 1 if there is one. Without earlier results nothing is compared.
"""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import RESULTS

LOSS = 1.2
LOWER_IS_BETTER = {"s", "ms", "us", "µs", "MiB", "bytes", "B"}
"""First words of the units of which a smaller figure is better. Of others a greater one is. Ratios are not
compared, because their parts are."""
Figures = dict[tuple[str, str], tuple[float, str]]
"""Median and unit by benchmark and name."""


def main() -> int:
    before = read(RESULTS)
    status = subprocess.run([sys.executable, "-m", "benchmarks"], check=False).returncode
    losses = compared(before, read(RESULTS))
    print(*losses or ["no figure is worse by a fifth" if before else "no earlier results"], sep="\n")
    return 1 if status or losses else 0


def read(folder: Path) -> Figures:
    contents = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {
        (content["benchmark"], figure["name"]): (figure["median"], figure["unit"])
        for content in contents
        for figure in content["figures"]
    }


def compared(before: Figures, after: Figures) -> list[str]:
    """Return a line for each figure of both runs that became worse by a fifth."""
    lines = []
    for key, (median, unit) in after.items():
        if key not in before or unit == "ratio" or not median or not before[key][0]:
            continue
        factor = median / before[key][0] if unit.split()[0] in LOWER_IS_BETTER else before[key][0] / median
        if factor >= LOSS:
            lines.append(f"worse: {key[0]}, {key[1]}: {before[key][0]:.4g} -> {median:.4g} {unit}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
