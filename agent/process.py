"""Child programs with a time limit. They also end with their turn and with their worker."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from agent.errors import ProgramTerminated, ProgramTimedOut, TurnStopped

POLL_S = 0.2
TERMINATE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""
CHUNK_BYTES = 64 * 1024
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""Prefix of a command line (util-linux): the kernel kills the program when its worker dies, before another worker takes
the turn over."""

READING_PAUSE = 3
"""Pause after each read of a program's output, as a multiple of the CPU time that parsing took: a program that prints
without end blocks on its full pipe, and uses at most a quarter of a core of the worker."""

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    limit_s: float,
    is_stopped: Callable[[], bool],
    on_output: OnOutput = lambda stream, chunk: None,
    stdin: bytes | None = None,
) -> int:
    """Run a program to its end. Return its exit status, or the negative number of the signal that ended it.

    The program's environment is exactly `env`. `on_output` is called with each chunk that the program writes.
    `is_stopped` is polled every POLL_S seconds. When `run` returns or raises, every process of the program's group has
    ended.

    Raises:
        ProgramTimedOut: the program did not end within `limit_s` seconds.
        TurnStopped: `is_stopped` returned true.
        ProgramTerminated: the program was ended by a SIGTERM that `run` did not send.
        OSError: the program cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603  # the caller chooses the program, and no shell parses the arguments
        [*DIE_WITH_PARENT, *argv],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        if process.stdin is not None:  # every input fits into the 64 KiB of a pipe, so that the write does not block
            with suppress(BrokenPipeError), process.stdin:
                process.stdin.write(stdin or b"")
        _watch(process, time.monotonic() + limit_s, limit_s, is_stopped, on_output)
        if process.wait() == -signal.SIGTERM:
            raise ProgramTerminated("a program of the turn was ended from outside (SIGTERM)")
        return process.returncode
    finally:
        _end(process)


def _watch(
    process: subprocess.Popen[bytes],
    deadline: float,
    limit_s: float,
    is_stopped: Callable[[], bool],
    on_output: OnOutput,
) -> None:
    """Pass the output to `on_output` until the program has ended, even if its children still have the pipes open."""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, "stdout")
        selector.register(process.stderr, selectors.EVENT_READ, "stderr")
        while True:
            has_ended = process.poll() is not None
            ready = selector.select(0 if has_ended else POLL_S)
            began_s = time.thread_time()
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK_BYTES)
                if chunk:
                    on_output(key.data, chunk)
                else:
                    selector.unregister(key.fileobj)
            if not has_ended:
                _wait(process, READING_PAUSE * (time.thread_time() - began_s))
            if has_ended and not ready:
                return
            if not selector.get_map():
                _wait(process, POLL_S)
            if is_stopped():
                raise TurnStopped("the turn was stopped")
            if time.monotonic() >= deadline:
                raise ProgramTimedOut(f"the program did not end within {limit_s:g} s")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process group: SIGTERM if the program still runs, then SIGKILL."""
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
