"""Child programs with a time limit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent import process
from agent.errors import ProgramTimedOut, TurnStopped
from agent.process import Stream
from tests.processes.state import is_running
from tests.processes.waiting import killed_on_failure, until

pytestmark = pytest.mark.needs("setpriv")
ENV = {"PATH": os.environ["PATH"]}


def run(script: str, folder: Path, **options: object) -> tuple[int, dict[Stream, bytes]]:
    written: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    def on_output(stream: Stream, chunk: bytes) -> None:
        written[stream] += chunk

    arguments: dict[str, object] = {"limit_s": 30, "is_stopped": lambda: False, **options}
    status = process.run(["sh", "-c", script], cwd=folder, env=ENV, on_output=on_output, **arguments)  # type: ignore[arg-type]
    return status, written


def test_status_and_both_streams_are_returned_and_input_and_output_are_passed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, written = run("pwd; echo no >&2; exit 3", tmp_path)
    assert (status, written) == (3, {"stdout": f"{tmp_path}\n".encode(), "stderr": b"no\n"})
    assert run("kill -9 $$", tmp_path)[0] == -signal.SIGKILL
    assert run("cat", tmp_path, stdin=b"x" * 50_000)[1]["stdout"] == b"x" * 50_000
    assert len(run("head -c 3000000 /dev/zero", tmp_path)[1]["stdout"]) == 3_000_000
    monkeypatch.setenv("GIT_TOKEN", "secret")
    assert b"secret" not in run("env", tmp_path)[1]["stdout"], "the program does not inherit the environment"


@pytest.mark.long
def test_time_limit_ends_the_program_and_its_children(tmp_path: Path) -> None:
    with pytest.raises(ProgramTimedOut, match="did not end within 1 s"):
        run("sh -c 'echo $$ > child; exec sleep 100' & wait", tmp_path, limit_s=1)
    assert until(lambda: not is_running(int((tmp_path / "child").read_text())))


@pytest.mark.long
def test_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    with pytest.raises(ProgramTimedOut):
        run("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", tmp_path, limit_s=1)
    assert until(lambda: not is_running(int((tmp_path / "pid").read_text())))


def test_stop_ends_the_program(tmp_path: Path) -> None:
    with pytest.raises(TurnStopped):
        run("touch begun; sleep 1000", tmp_path, is_stopped=(tmp_path / "begun").exists)


def test_stopped_program_has_time_to_end_by_itself(tmp_path: Path) -> None:
    script = "trap 'sleep 0.2; touch ended; exit' TERM; touch begun; while :; do sleep 0.05; done"
    with pytest.raises(TurnStopped):
        run(script, tmp_path, is_stopped=(tmp_path / "begun").exists)
    assert (tmp_path / "ended").exists()


def test_run_does_not_wait_for_a_background_child_and_kills_it(tmp_path: Path) -> None:
    assert run("sh -c 'echo $$ > child; exec sleep 100' & while ! [ -s child ]; do :; done", tmp_path)[0] == 0
    assert until(lambda: not is_running(int((tmp_path / "child").read_text())))


def test_program_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from agent import process\n"
        "process.run(['sh', '-c', 'echo $$ > pid; exec sleep 100'], cwd=Path(sys.argv[1]), env={'PATH': sys.argv[2]},"
        " limit_s=100, is_stopped=lambda: False)"
    )
    with subprocess.Popen([sys.executable, "-c", script, tmp_path, ENV["PATH"]]) as parent, killed_on_failure(parent):
        pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip()))
        parent.kill()
    assert until(lambda: not is_running(pid))


@pytest.mark.long
def test_reading_output_uses_at_most_a_quarter_of_a_core(tmp_path: Path) -> None:
    reads_s = []

    def parse(stream: Stream, chunk: bytes) -> None:
        reads_s.append(time.monotonic())
        _burn(0.1)

    with pytest.raises(TurnStopped):
        process.run(["yes"], cwd=tmp_path, env=ENV, limit_s=60, is_stopped=lambda: len(reads_s) == 3, on_output=parse)
    assert reads_s[2] - reads_s[0] >= 2 * 0.4


def _burn(cpu_s: float) -> None:
    """Use `cpu_s` CPU seconds of this thread."""
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        pass
