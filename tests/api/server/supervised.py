"""Server processes of the tests of the supervisor.

They are in a module of their own, which imports little: a process imports the module of its function before its first
heartbeat.
"""

import multiprocessing
import os
import signal
import threading
from pathlib import Path

from uvicorn.config import STARTUP_FAILURE


def record(folder: Path, number: int) -> None:
    """Write down the start of a server process: its number and process id."""
    with (folder / "starts").open("a") as starts:
        starts.write(f"{number} {os.getpid()}\n")


def started(folder: Path) -> list[str]:
    path = folder / "starts"
    return path.read_text().splitlines() if path.exists() else []


def end_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    assert supervisor is not None
    assert supervisor.pid is not None
    os.kill(supervisor.pid, signal.SIGTERM)


def never_ends(number: int, folder: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    record(folder, number)
    threading.Event().wait()


def cannot_start(number: int, folder: Path) -> None:
    record(folder, number)
    os._exit(STARTUP_FAILURE)


def ends_at_once(number: int, folder: Path) -> None:
    record(folder, number)
    starts = len(started(folder))
    if starts == 1:
        raise RuntimeError("a fault of the service")
    if starts == 2:
        os._exit(STARTUP_FAILURE)
    end_supervisor()
    threading.Event().wait()


def second_fails_first(number: int, folder: Path) -> None:
    """Fail at the first start of the process 1, and end the supervisor at its second start."""
    record(folder, number)
    if number == 1:
        if sum(line.startswith("1 ") for line in started(folder)) == 1:
            os._exit(STARTUP_FAILURE)
        end_supervisor()
    threading.Event().wait()


def stops_itself(number: int, folder: Path) -> None:
    record(folder, number)
    if len(started(folder)) == 1:
        os.kill(os.getpid(), signal.SIGSTOP)  # this thread may continue until another one has received the signal
    else:
        end_supervisor()
    threading.Event().wait()
