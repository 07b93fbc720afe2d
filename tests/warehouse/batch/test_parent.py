"""A child process leaves Ctrl-C to its parent process from its first instruction."""

import multiprocessing
import os
import signal

import pytest

from warehouse.batch.parent import follow_parent, forking


def test_ctrl_c_before_a_forked_child_process_ignores_it_does_not_end_it() -> None:
    child = multiprocessing.get_context("fork").Process(target=_interrupt_itself)
    with forking():
        child.start()
    child.join()
    assert child.exitcode == 0


def test_ctrl_c_while_a_child_process_is_forked_reaches_the_parent_process_afterwards() -> None:
    reached = []

    def fork() -> None:
        with forking():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("the end of the block")
        reached.append("the next line")

    with pytest.raises(KeyboardInterrupt):
        fork()
    assert reached == ["the end of the block"]


def _interrupt_itself() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    follow_parent()
    os.kill(os.getpid(), signal.SIGINT)
