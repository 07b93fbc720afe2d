"""Lines/s of the command `readership import`, against GoAccess on the same log. The goal is a ratio of 8.

The logs have 50,000 random public addresses, and the requests of 1, 40 or 230 days, each of which is a partition. Also
measured: a log with 100,000 distinct user agents (goal: twice GoAccess), the memory for 10,000,000 lines (goal: under
1 GiB), and the same requests as the JSON logs of four products (goal: 500,000 lines/s each). The result of
the first log's import is compared with the counts of awk, and that of a JSON log with the result of the first log.

Each command runs once before it is timed, because the page cache may have evicted its program and log while the other
command ran.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from benchmarks.data import generate_log
from benchmarks.data.line_formats import JSON_PRODUCTS
from benchmarks.measure import RUNS, Measured, ratio, record
from benchmarks.start import COMMAND as TEST_COMMAND

COMMAND = os.environ.get("READERSHIP_TEST_COMMAND", TEST_COMMAND)
"""Command to measure, of an installation without pandas and NumPy, which pyarrow imports if they are installed."""
LINES = 1_000_000
MANY_LINES = 10_000_000
DAYS = (1, 40, 230)
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
$6 ~ /Bytespider/ { bytespider++ }
END { printf "{\"lines\":%d,\"page_views\":%d,\"method\":%d,\"status\":%d,\"not_a_page\":%d,\"Bytespider\":%d}\n",
      NR, views, method, status, not_a_page, bytespider }
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as folder:
        varied, long = Path(folder) / "varied.log", Path(folder) / "long.log"
        logs = {days: Path(folder) / f"{days}.log" for days in DAYS}
        for days, log in logs.items():
            generate_log.write(log, LINES, USER_AGENTS, days=days)
        generate_log.write(varied, LINES, MANY_USER_AGENTS)
        counted = _check(logs[DAYS[0]])
        json_figures = [_json_figure(Path(folder) / "json.log", each.__name__, counted) for each in JSON_PRODUCTS]
        imported, goaccess, varied_rates = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list), []
        for _ in range(RUNS):
            for days, log in logs.items():
                imported[days].append(LINES / _import(log)[0])
                goaccess[days].append(LINES / _goaccess(log))
            varied_rates.append(LINES / _import(varied)[0])
        generate_log.write(long, MANY_LINES, USER_AGENTS)
        many = [_import(long) for _ in range(RUNS)]
    from_varied = Measured(f"import, {MANY_USER_AGENTS:,} user agents", "lines/s", varied_rates)
    by_goaccess = {days: Measured(f"GoAccess, {days} days", "lines/s", rates) for days, rates in goaccess.items()}
    by_import = {days: Measured(f"import, {days} days", "lines/s", rates) for days, rates in imported.items()}
    pairs = [
        (
            by_import[days],
            by_goaccess[days],
            ratio(f"import / GoAccess, {days} days; goal 8", by_import[days], by_goaccess[days]),
        )
        for days in DAYS
    ]
    record(
        "import",
        [
            *json_figures,
            *(figure for each in pairs for figure in each),
            from_varied,
            ratio(f"{MANY_USER_AGENTS:,} / {USER_AGENTS:,} user agents", from_varied, by_import[40]),
            ratio(f"{MANY_USER_AGENTS:,} user agents / GoAccess; goal 2", from_varied, by_goaccess[40]),
            Measured(f"import of {MANY_LINES:,} lines", "lines/s", [MANY_LINES / seconds for seconds, _ in many]),
            Measured(f"memory at most, {MANY_LINES:,} lines", "MiB", [peak_mib for _, peak_mib in many]),
        ],
    )


def _import(log: Path) -> tuple[float, float]:
    """Return the seconds and the peak memory in MiB of an import into an empty folder."""
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
    arguments = [command, str(log), "--log-format=COMBINED", "--no-progress", "-o", str(report)]
    _timed(arguments)
    return _timed(arguments)[0]


def _timed(command: list[str]) -> tuple[float, float]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds, usage.ru_maxrss / 1024


def _check(log: Path) -> dict[str, int]:
    """Check that the result of an import equals the counts of awk, and return it."""
    counted = json.loads(subprocess.run(["awk", AWK, str(log)], check=True, capture_output=True, text=True).stdout)
    imported = _counts(log)
    assert imported == counted, f"the import counts {imported}, awk {counted}"
    return imported


def _counts(log: Path) -> dict[str, int]:
    """Return the counts of an import: lines, page views, skipped lines by reason, and page views of Bytespider, whose
    operator publishes no addresses.

    The errors of AI agents and bots, which are stored, count as `status`, too.
    """
    with tempfile.TemporaryDirectory(prefix="readership-bench-") as data:
        subprocess.run([COMMAND, "--data", data, "project", "create", PROJECT], check=True, capture_output=True)
        done = subprocess.run(
            [COMMAND, "--data", data, "import", PROJECT, str(log)], check=True, capture_output=True, text=True
        )
    result = json.loads(done.stdout)
    return {
        **{name: result[name] for name in ("lines", "page_views")},
        **result["skipped"],
        "status": result["skipped"].get("status", 0) + result["errors"],
        "Bytespider": result["agents"]["Bytespider"],
    }


def _json_figure(log: Path, product: str, expected: dict[str, int]) -> Measured:
    """Return the speed of the import of a product's log, whose counts must be those of the same requests in combined
    format. Of Vercel's log only the lines and the sum are compared, because some of its lines repeat a request."""
    generate_log.write(log, LINES, USER_AGENTS, product)
    counts = _counts(log)
    reasons = expected.keys() - {"Bytespider"}
    if product == "vercel":
        assert sum(counts.get(name, 0) for name in {*reasons, "not_a_request"} - {"lines"}) == LINES
        assert counts["not_a_request"] == LINES // 20
    else:
        assert counts == expected, f"the import of {product} counts {counts}, not {expected}"
    line_bytes = log.stat().st_size // LINES
    runs = [LINES / _import(log)[0] for _ in range(RUNS)]
    log.unlink()
    return Measured(f"import of {product}, {line_bytes:,} bytes a line; goal 500,000", "lines/s", runs)
