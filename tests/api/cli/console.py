"""The command line as a shell sees it: exit status, standard output and standard error."""

import json
import os
import re
import shutil
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from api.cli.main import main
from tests.processes.running import COMMAND, memory_unlimited

SAMPLE = Path(__file__).parents[3] / "sample_data"
EXPECTED = json.loads((SAMPLE / "expected_views.json").read_text())
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
KEY = re.compile(r"rdr_(?:admin|ingest|read)_[0-9A-Za-z]{38}")
DAY_S = 86_400


@dataclass(frozen=True)
class Done:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str


def call(data: Path, *arguments: str, stdin: str = "", **environ: str) -> Done:
    """Run a command over a data folder, in this process: a process of its own takes a second to start."""
    with memory_unlimited():
        ended = CliRunner().invoke(main, ["--data", str(data), *arguments], input=stdin, env=environ)
    assert isinstance(ended.exception, SystemExit | None), "".join(traceback.format_exception(ended.exception))
    return Done(ended.exit_code, ended.stdout, ended.stderr)


def result(done: Done) -> Any:
    """Return the JSON document that a successful command prints to a pipe."""
    assert done.status == 0, done.err
    assert done.out.endswith("\n")
    return json.loads(done.out)


def complaint(done: Done) -> str:
    """Return the one line that a failed command prints to standard error."""
    assert (done.status, done.out) == (1, "")
    assert re.fullmatch(r"Error: [^\n]+\n", done.err), done.err
    return done.err


@dataclass(frozen=True)
class Imported:
    """A data folder with the sample log, for tests to copy, a key of its project, and the output of the import."""

    data: Path
    key: str
    output: Done

    def copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(self.data, folder / "data"))


@contextmanager
def in_background(*arguments: str | Path, **options: Any) -> Iterator[Callable[[], bool]]:
    """Run a command and end it by SIGTERM with status 0; yield a function that asserts that the command still runs."""
    process = subprocess.Popen([COMMAND, *arguments], stderr=subprocess.DEVNULL, **options)

    def runs() -> bool:
        assert process.poll() is None, "the command ended by itself"
        return True

    try:
        yield runs
    finally:
        process.terminate()
        status = process.wait(60)
    assert status == 0


def all_of(terminal: int) -> str:
    """Return the output on a terminal until its last writer is gone, which Linux reports as an error."""
    pieces = []
    with suppress(OSError):
        while piece := os.read(terminal, 65_536):
            pieces.append(piece)
    os.close(terminal)
    return b"".join(pieces).decode()
