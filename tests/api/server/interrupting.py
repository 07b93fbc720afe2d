"""A server process that gets Ctrl-C while this module is imported by its start, and then so does the supervisor.

A terminal sends the signal to both at the same time. Here the supervisor gets it when the server process has ended, or
has printed a traceback.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from types import TracebackType

SUPERVISOR = int(os.environ.setdefault("SUPERVISOR", str(os.getpid())))  # child processes inherit the variable


def _print_and_interrupt_supervisor(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    sys.__excepthook__(kind, error, traceback)
    os.kill(SUPERVISOR, signal.SIGINT)


if multiprocessing.current_process().name != "MainProcess":  # this is the server process
    sys.excepthook = _print_and_interrupt_supervisor
    subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -INT {SUPERVISOR}"])  # when this process has ended
    os.kill(os.getpid(), signal.SIGINT)


def never_ends(number: int) -> None:
    threading.Event().wait()
