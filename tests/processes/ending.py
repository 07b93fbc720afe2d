"""End of all processes that a run of pytest leaves, also of a run that is killed.

Each process has the mark of its run in its environment. A watching process waits until pytest has ended, and then sends
SIGKILL to every process with the mark: services, databases, browsers and their children.
"""

import os
import select
import signal
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

MARK = "READERSHIP_TEST_RUN"
"""Name of the variable. Its value begins with the mark of the run that has started this run, if there is one."""


def watch() -> None:
    """Mark the processes that this process will start, and start the process that ends them after it."""
    os.environ[MARK] = f"{os.environ.get(MARK, '')}{uuid.uuid4().hex}"
    argv = [sys.executable, "-S", "-E", __file__, str(os.getpid()), os.environ[MARK]]
    streams = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    os.posix_spawn(sys.executable, argv, os.environ, file_actions=streams, setsid=True)


def end(run: int, mark: str) -> None:
    """Wait until the process `run` has ended, and kill all processes with the mark."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(run)
        if os.getppid() == run:  # else the id may be another process's by now
            select.select([handle], [], [])
    while left := _marked(mark):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _marked(mark: str) -> list[int]:
    """Return the ids of the processes with the mark, except this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended, or is another user's
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


if __name__ == "__main__":
    end(int(sys.argv[1]), sys.argv[2])
