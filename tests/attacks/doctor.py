"""A day with long, distinct paths, as a large site has or a stranger sends, and what `doctor` takes for it.

    python -m tests.attacks.doctor [PATHS [FOLDER [CHARACTERS]]]

A FOLDER is filled if it is missing, and stays for the next commit to be measured.
"""

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.processes.running import COMMAND, PROJECT, new_key

PATHS, PATH_CHARACTERS = 2_000_000, 200
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


def lines(paths: int, characters: int) -> Iterator[str]:
    """Yield the lines of an access log of yesterday, each with another path."""
    day = datetime.now(UTC) - timedelta(days=1)
    for number in range(paths):
        path = f"/{secrets.token_hex(characters // 2)}"[:characters]
        at = f"{day:%d/%b/%Y}:{number * 24 // paths:02}:{number // 60 % 60:02}:{number % 60:02} +0000"
        yield f'203.0.113.{number % 250} - - [{at}] "GET {path} HTTP/1.1" 200 5120 "-" "{BROWSER}"\n'


def fill(data: Path, paths: int, characters: int) -> None:
    """Import a log with this number of paths, compact its day, and write its rollup."""
    new_key(data)
    log = data.with_suffix(".log")
    with log.open("w") as file:
        file.writelines(lines(paths, characters))
    for command in (("import", PROJECT, str(log)), ("flush",), ("compact",)):
        measure(data, *command)
    log.unlink()


def measure(data: Path, *command: str) -> None:
    """Run a command, and print its output, its time, its processor time and its largest resident memory."""
    began = time.monotonic()
    process = subprocess.Popen([COMMAND, "--data", data, *command])
    _, _, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began, used.ru_utime + used.ru_stime
    print(
        f"{command[0]}: {seconds[0]:.0f} s, {seconds[1]:.0f} s of processor time, {used.ru_maxrss / 1024:.0f} MiB",
        flush=True,
    )


def main(paths: int, data: Path, characters: int) -> None:
    if not data.exists():
        fill(data, paths, characters)
    measure(data, "doctor")


if __name__ == "__main__":
    paths, folder = int(sys.argv[1]) if sys.argv[1:] else PATHS, sys.argv[2:3]
    characters = int(sys.argv[3]) if sys.argv[3:] else PATH_CHARACTERS
    with tempfile.TemporaryDirectory(prefix="readership-attack-") as temporary:
        main(paths, Path(folder[0] if folder else f"{temporary}/data"), characters)
