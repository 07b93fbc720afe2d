"""External programs that tests need, and the Debian packages that contain them.

A test that needs a program calls `require("strace")` or has the marker `@pytest.mark.needs("strace")`. Without the
program the test is skipped, and the line before the last of the run counts these skips and names the command that
installs the packages. With $CI set the test fails instead.

`python -m tests.programs` prints the packages that are missing on this machine, with those of PREFERRED, for `.ci/run`.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

PACKAGES = {
    "bwrap": "bubblewrap",
    "caddy": "caddy",
    "cc": "gcc",
    "chromium": "chromium",
    "curl": "curl",
    "git": "git",
    "goaccess": "goaccess",
    "initdb": "postgresql",
    "nginx": "nginx",
    "node": "nodejs",
    "prlimit": "util-linux",
    "promtool": "prometheus",
    "setpriv": "util-linux",
    "strace": "strace",
}
"""Debian package of each program that a test may need."""
PREFERRED = {"chromium": "chromium-headless-shell"}
"""Program, of the package of its name, that is used in place of another one where it is installed.

The shell of Chromium takes less processor time: 0.4 s instead of 2.4 s per start with a page, and 0.15 s instead of
0.6 s per new profile.
"""
INSTALL = "apt-get install"
POSTGRESQL_FOLDERS = sorted(
    Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: float(each.parts[4]), reverse=True
)
"""Folders of PostgreSQL's server programs, newest version first; Debian does not put them in PATH."""
_REASON = re.compile(r"needs (?P<need>[^:]+): (?P<remedy>.+)", re.DOTALL)


def find(program: str) -> Path | None:
    """Return the path of an installed program, or of the one that is preferred to it; None without both."""
    folders = [*map(str, POSTGRESQL_FOLDERS), os.environ.get("PATH", os.defpath)]
    for name in filter(None, (PREFERRED.get(program), program)):
        if path := shutil.which(name, path=os.pathsep.join(folders)):
            return Path(path)
    return None


def require(*programs: str) -> None:
    """Skip the test unless all of these programs of PACKAGES are installed."""
    for program in programs:
        package = PACKAGES[program]
        if find(program) is None:
            skip(package, f"{INSTALL} {package}")


def skip(need: str, remedy: str) -> NoReturn:
    """Skip the test because `need` is missing, or fail it if $CI is set. `remedy` is a command or a reason."""
    reason = f"needs {need}: {remedy}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def shortfall(reasons: Iterable[str]) -> str | None:
    """Return one line that counts the skips of `skip` by need and lists the remedies; None without such a skip."""
    matches = [match for reason in reasons if (match := _REASON.search(reason))]
    if not matches:
        return None
    needs = Counter(match["need"] for match in matches).most_common()
    remedies = list(dict.fromkeys(" ".join(match["remedy"].split()) for match in matches))
    packages = sorted({remedy.removeprefix(INSTALL).strip() for remedy in remedies if remedy.startswith(INSTALL)})
    commands = [f"{INSTALL} {' '.join(packages)}"] if packages else []
    commands += [remedy for remedy in remedies if not remedy.startswith(INSTALL)]
    counts = ", ".join(f"{need} ({count})" for need, count in needs)
    noun = "test" if len(matches) == 1 else "tests"
    return f"{len(matches)} {noun} skipped for want of {counts}: {'; '.join(commands)}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Apply the marker `needs`."""
    for marker in item.iter_markers("needs"):
        require(*marker.args)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the line of `shortfall`. The count of all tests follows, as the last line of the run."""
    line = shortfall(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    if line is not None:
        terminalreporter.write_line(line, yellow=True)


if __name__ == "__main__":
    missing = {package for program, package in PACKAGES.items() if find(program) is None}
    print(*sorted(missing | {program for program in PREFERRED.values() if find(program) is None}))
