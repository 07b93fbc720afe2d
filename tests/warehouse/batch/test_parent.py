"""A child process leaves Ctrl-C to its parent process from its first instruction, and SIGTERM always ends it.

Each test forks from a process of its own, which has one thread: a process of pytest-xdist has several, and a signal
that is blocked in one thread goes to another one.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.batch.parent import follow_parent, forking

ROOT = Path(__file__).parents[3]


def result_of(function: str) -> str:
    """Run a function of this module in a new process, and return what it prints."""
    program = f"from tests.warehouse.batch import test_parent; test_parent.{function}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)], ids=["Ctrl-C", "SIGTERM"]
)
def test_signal_before_a_forked_child_process_is_ready_has_the_effect_of_a_later_one(
    number: signal.Signals, exit_code: int
) -> None:
    assert result_of(f"fork_child_that_signals_itself({int(number)})") == f"{exit_code}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_signal_while_a_child_process_is_forked_reaches_the_parent_process_afterwards(number: signal.Signals) -> None:
    assert result_of(f"signal_this_process_while_it_forks({int(number)})") == "the end of the block\nthe handler\n"


def fork_child_that_signals_itself(number: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: None)  # a handler of the parent process, which the child inherits
    child = multiprocessing.get_context("fork").Process(target=_signal_itself, args=(number,))
    with forking():
        child.start()
    child.join()
    print(child.exitcode)


def signal_this_process_while_it_forks(number: int) -> None:
    signal.signal(number, lambda *_: print("the handler"))
    with forking():
        os.kill(os.getpid(), number)
        print("the end of the block")


def _signal_itself(number: int) -> None:
    os.kill(os.getpid(), number)
    follow_parent()
    os.kill(os.getpid(), signal.SIGINT)
