"""A program that ends when it must: by itself, at its time limit, when its turn is stopped, or with this process."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from agent.errors import ProgramTerminated, ProgramTimedOut, TurnStopped

POLL_S = 0.2
TERMINATE_S = 2.0
"""Between being asked to end and being killed."""
CHUNK_BYTES = 64 * 1024
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""From util-linux: a worker that is killed takes its programs along, before another worker begins again."""

READING_SHARE = 0.25
"""Share of one core that reading a program's output may take, over time."""
READING_BURST_S = 1.0
"""CPU seconds that reading may take at once."""

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]


@dataclass(slots=True)
class Pace:
    """Token bucket of CPU seconds for the thread that reads a program's output.

    A program that prints without end is read more slowly, and waits for its pipe: it cannot use up a core of the
    worker, whatever its output costs to parse. `now_s` and `cpu_s` are clocks, in seconds.
    """

    now_s: Callable[[], float] = time.monotonic
    cpu_s: Callable[[], float] = time.thread_time
    _credit_s: float = READING_BURST_S
    _looked_s: float = field(init=False)
    _used_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._looked_s, self._used_s = self.now_s(), self.cpu_s()

    def pause_s(self) -> float:
        """Return how long to wait before the next read, in seconds; 0 if there is credit left."""
        now_s, used_s = self.now_s(), self.cpu_s()
        earned_s = (now_s - self._looked_s) * READING_SHARE
        self._credit_s = min(READING_BURST_S, self._credit_s + earned_s) - (used_s - self._used_s)
        self._looked_s, self._used_s = now_s, used_s
        return max(0.0, -self._credit_s / READING_SHARE)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    limit_s: float,
    is_stopped: Callable[[], bool],
    on_output: OnOutput = lambda stream, piece: None,
    stdin: bytes | None = None,
) -> int:
    """Run a program to its end; returns its exit status, negative for the signal that ended it.

    Its environment is `env` alone. `on_output` is told what it writes, as it comes. `is_stopped` is asked every POLL_S.
    When this returns or raises, the program and all of its process group are gone.

    Raises:
        ProgramTimedOut: it did not end within `limit_s` seconds.
        TurnStopped: `is_stopped` said so.
        ProgramTerminated: it was sent SIGTERM, and not by this.
        OSError: it cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603  # what to run is the caller's decision, and no shell reads it
        [*DIE_WITH_PARENT, *argv],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        if process.stdin is not None:
            _feed(process.stdin, stdin or b"")
        _watch(process, time.monotonic() + limit_s, limit_s, is_stopped, on_output)
        if process.wait() == -signal.SIGTERM:
            raise ProgramTerminated("a program of the turn was ended from outside (SIGTERM)")
        return process.returncode
    finally:
        _end(process)


def _feed(stdin: IO[bytes], content: bytes) -> None:
    """What is given is small: a pipe takes 64 KiB at once."""
    with suppress(BrokenPipeError), stdin:
        stdin.write(content)


def _watch(
    process: subprocess.Popen[bytes],
    deadline: float,
    limit_s: float,
    is_stopped: Callable[[], bool],
    on_output: OnOutput,
) -> None:
    """Hand on what it writes until it has ended; a grandchild may hold its pipes open for longer."""
    assert process.stdout is not None
    assert process.stderr is not None
    pace = Pace()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, "stdout")
        selector.register(process.stderr, selectors.EVENT_READ, "stderr")
        while True:
            has_ended = process.poll() is not None
            pause_s = 0 if has_ended else pace.pause_s()
            if pause_s:
                _wait(process, min(pause_s, POLL_S))
            ready = [] if pause_s else selector.select(0 if has_ended else POLL_S)
            for key, _ in ready:
                piece = os.read(key.fd, CHUNK_BYTES)
                if piece:
                    on_output(key.data, piece)
                else:
                    selector.unregister(key.fileobj)
            if has_ended and not ready:
                return
            if not selector.get_map():
                _wait(process, POLL_S)
            if is_stopped():
                raise TurnStopped("the turn was stopped")
            if time.monotonic() >= deadline:
                raise ProgramTimedOut(f"it did not end within {limit_s:g} s")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask its group to end if it has not, then kill whatever of the group is left."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        _wait(process, TERMINATE_S)
    _signal(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
