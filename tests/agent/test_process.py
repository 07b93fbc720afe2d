"""A program ends when it must, and leaves nothing behind."""

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
from tests.waiting import until

ENV = {"PATH": os.environ["PATH"]}


def run(script: str, folder: Path, **options: object) -> tuple[int, dict[Stream, bytes]]:
    written: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}

    def on_output(stream: Stream, piece: bytes) -> None:
        written[stream] += piece

    given: dict[str, object] = {"limit_s": 30, "is_stopped": lambda: False, **options}
    status = process.run(["sh", "-c", script], cwd=folder, env=ENV, on_output=on_output, **given)  # type: ignore[arg-type]
    return status, written


def test_its_status_and_both_streams_are_told(tmp_path: Path) -> None:
    status, written = run("pwd; echo no >&2; exit 3", tmp_path)
    assert (status, written) == (3, {"stdout": f"{tmp_path}\n".encode(), "stderr": b"no\n"})


def test_a_signal_is_a_negative_status(tmp_path: Path) -> None:
    assert run("kill -9 $$", tmp_path)[0] == -signal.SIGKILL


def test_it_reads_what_it_is_given(tmp_path: Path) -> None:
    assert run("cat", tmp_path, stdin=b"x" * 50_000)[1]["stdout"] == b"x" * 50_000


def test_much_output_comes_whole(tmp_path: Path) -> None:
    assert len(run("head -c 3000000 /dev/zero", tmp_path)[1]["stdout"]) == 3_000_000


def test_nothing_of_our_environment_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TOKEN", "secret")
    assert b"secret" not in run("env", tmp_path)[1]["stdout"]


def test_past_its_limit_it_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(ProgramTimedOut, match="did not end within 1 s"):
        run("sh -c 'echo $$ > child; exec sleep 100' & wait", tmp_path, limit_s=1)
    assert until(lambda: not _lives(int((tmp_path / "child").read_text())))


def test_a_program_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    with pytest.raises(ProgramTimedOut):
        run("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", tmp_path, limit_s=1)
    assert until(lambda: not _lives(int((tmp_path / "pid").read_text())))


def test_a_stop_ends_it_within_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(TurnStopped):
        run("touch begun; sleep 100", tmp_path, is_stopped=(tmp_path / "begun").exists)
    assert time.monotonic() - began < 30


def test_a_child_left_behind_does_not_keep_it(tmp_path: Path) -> None:
    assert run("sh -c 'echo $$ > child; exec sleep 100' & while ! [ -s child ]; do :; done", tmp_path)[0] == 0
    assert until(lambda: not _lives(int((tmp_path / "child").read_text())))


def test_a_killed_parent_takes_it_along(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from agent import process\n"
        "process.run(['sh', '-c', 'echo $$ > pid; exec sleep 100'], cwd=Path(sys.argv[1]), env={'PATH': sys.argv[2]},"
        " limit_s=100, is_stopped=lambda: False)"
    )
    with subprocess.Popen([sys.executable, "-c", script, tmp_path, ENV["PATH"]]) as parent:
        pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip()))
        parent.kill()
    assert until(lambda: not _lives(pid))


def test_reading_is_paused_until_it_took_a_quarter_of_a_core() -> None:
    now_s, cpu_s = 0.0, 0.0
    pace = process.Pace(lambda: now_s, lambda: cpu_s)
    cpu_s = process.READING_BURST_S
    assert pace.pause_s() == 0, "a burst is free"
    cpu_s += 0.5
    assert pace.pause_s() == 2
    now_s += 1.5
    assert pace.pause_s() == 0.5
    now_s += 0.5
    assert pace.pause_s() == 0
    now_s += 3600
    cpu_s += process.READING_BURST_S + 0.25
    assert pace.pause_s() == 1, "a quiet hour earns no more than one burst"


def test_a_program_whose_output_is_costly_to_parse_is_not_read_for_a_while(tmp_path: Path) -> None:
    """The first piece takes all credit and 0.25 s more: a pause of a second, in which a stop is still looked for."""
    looks = []

    def parse(stream: Stream, piece: bytes) -> None:
        if not looks:
            _burn(process.READING_BURST_S + 0.25)
        looks.append(0)

    def is_stopped() -> bool:
        if looks:
            looks[-1] += 1
        return len(looks) == 2

    with pytest.raises(TurnStopped):
        process.run(["yes"], cwd=tmp_path, env=ENV, limit_s=60, is_stopped=is_stopped, on_output=parse)
    assert looks[0] > 2, "between the first piece and the second"


def _burn(cpu_s: float) -> None:
    """Use up so many CPU seconds of this thread."""
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        pass


def _lives(pid: int) -> bool:
    """Whether the process is there and not a mere entry that waits to be read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
