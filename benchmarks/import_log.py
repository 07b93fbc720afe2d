"""Lines/s of `readership import` as a whole process, against GoAccess on the same log; goal 10 times as many.

Also with 100,000 distinct user agents, goal half of that; and the memory of 10,000,000 lines, goal under 1 GiB. What
the first log's import says is compared with what awk counts.

Each is run once before it is timed: while the other one ran, for a quarter of a minute, a system may have let its
program and its log go, which then come from the disk.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import generate_log
from benchmarks.measure import RUNS, Measured, ratio, record
from benchmarks.start import COMMAND as OF_THE_TESTS

COMMAND = os.environ.get("READERSHIP_TEST_COMMAND", OF_THE_TESTS)
"""The command of an installation without pandas and NumPy, which pyarrow imports wherever they are installed."""
LINES = 1_000_000
MANY_LINES = 10_000_000
USER_AGENTS, MANY_USER_AGENTS = 2_000, 100_000
MIB = 1024 * 1024
PROJECT = "bench"
AWK = r"""
BEGIN { FS = "\"" }
{ split($2, request, " "); split($3, after, " "); path = request[2]; sub(/[?#].*/, "", path) }
request[1] != "GET" { method++; next }
after[1] !~ /^2/ && after[1] != 304 { status++; next }
path ~ /\.(css|js|png|woff2|svg|jpg)$/ { not_a_page++; next }
{ views++ }
$6 ~ /GPTBot/ { gptbot++ }
END { printf "{\"lines\":%d,\"page_views\":%d,\"method\":%d,\"status\":%d,\"not_a_page\":%d,\"GPTBot\":%d}\n",
      NR, views, method, status, not_a_page, gptbot }
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as folder:
        ordinary, varied, long = (Path(folder) / name for name in ("ordinary.log", "varied.log", "long.log"))
        generate_log.write(ordinary, LINES, USER_AGENTS)
        generate_log.write(varied, LINES, MANY_USER_AGENTS)
        _check(ordinary)
        ours, theirs, of_varied = [], [], []
        for _ in range(RUNS):
            ours.append(LINES / _import(ordinary)[0])
            of_varied.append(LINES / _import(varied)[0])
            theirs.append(LINES / _goaccess(ordinary))
        generate_log.write(long, MANY_LINES, USER_AGENTS)
        many = [_import(long) for _ in range(RUNS)]
    imported = Measured(f"import, {USER_AGENTS:,} user agents", "lines/s", ours)
    goaccess = Measured("GoAccess", "lines/s", theirs)
    from_varied = Measured(f"import, {MANY_USER_AGENTS:,} user agents", "lines/s", of_varied)
    record(
        "import",
        [
            imported,
            goaccess,
            ratio("import / GoAccess; goal 10", imported, goaccess),
            from_varied,
            ratio(f"{MANY_USER_AGENTS:,} / {USER_AGENTS:,} user agents; goal 0.5", from_varied, imported),
            ratio(f"{MANY_USER_AGENTS:,} user agents / GoAccess; goal 5", from_varied, goaccess),
            Measured(f"import of {MANY_LINES:,} lines", "lines/s", [MANY_LINES / seconds for seconds, _ in many]),
            Measured(f"memory at most, {MANY_LINES:,} lines", "MiB", [peak_mib for _, peak_mib in many]),
        ],
    )


def _import(log: Path) -> tuple[float, float]:
    """Seconds, and MiB of memory at most, of an import into an empty folder."""
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="readership-bench-", dir=log.parent) as data:
            subprocess.run([COMMAND, "--data", data, "project", "create", PROJECT], check=True, capture_output=True)
            timed = _timed([COMMAND, "--data", data, "import", PROJECT, str(log)])
    return timed


def _goaccess(log: Path) -> float:
    command = shutil.which("goaccess")
    if command is None:
        raise SystemExit("GoAccess is not installed (Debian, Ubuntu: apt-get install goaccess)")
    report = log.with_suffix(".json")
    asked = [command, str(log), "--log-format=COMBINED", "--no-progress", "-o", str(report)]
    _timed(asked)
    return _timed(asked)[0]


def _timed(command: list[str]) -> tuple[float, float]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, usage.ru_maxrss / 1024


def _check(log: Path) -> None:
    """What the import says of a log is what awk counts."""
    counted = json.loads(subprocess.run(["awk", AWK, str(log)], check=True, capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as data:
        subprocess.run([COMMAND, "--data", data, "project", "create", PROJECT], check=True, capture_output=True)
        done = subprocess.run(
            [COMMAND, "--data", data, "import", PROJECT, str(log)], check=True, capture_output=True, text=True
        )
    said = json.loads(done.stdout)
    found = {
        **{name: said[name] for name in ("lines", "page_views")},
        **said["skipped"],
        "GPTBot": said["agents"]["GPTBot"],
    }
    assert found == counted, f"the import says {found}, awk {counted}"
