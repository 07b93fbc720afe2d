"""Classification in child processes: the same answers as in this process, also if child processes die."""

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from ingest.classification.pool import BATCH_USER_AGENTS, classifier_processes, classify_many
from tests.processes.state import is_running
from tests.processes.waiting import until
from tests.warehouse.site import ROOT

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"
FEW = ["GPTBot/1.3", FIREFOX, "", "curl/8.5", "\N{SNOWMAN}"]
MANY = [f"{user_agent} {number}" for number in range(BATCH_USER_AGENTS) for user_agent in FEW]


def classifier_pids() -> list[int]:
    return [process.pid for process in multiprocessing.active_children() if process.pid is not None]


@pytest.mark.long
def test_child_processes_return_the_answers_of_this_process_in_the_same_order_also_after_ctrl_c() -> None:
    with classifier_processes() as classify:
        for user_agents in ([], FEW, MANY):
            assert classify(user_agents) == classify_many(user_agents)
        pids = classifier_pids()
        for pid in pids:
            os.kill(pid, signal.SIGINT)
        assert classify(MANY) == classify_many(MANY)
        assert classifier_pids() == pids
    assert classifier_pids() == []


@pytest.mark.long
@pytest.mark.parametrize("killed", [[1], [0, 1]], ids=["one", "both"])
def test_this_process_classifies_once_a_child_process_was_killed(killed: list[int]) -> None:
    with classifier_processes() as classify:
        classify(MANY)
        pids = classifier_pids()
        assert len(pids) == 2
        for each in killed:
            os.kill(pids[each], signal.SIGKILL)
        assert classify(MANY) == classify_many(MANY)
        assert classify(FEW) == classify_many(FEW)
    assert classifier_pids() == []


def test_children_end_by_sigterm_although_this_process_handles_the_signal() -> None:
    handled = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        with classifier_processes() as classify:
            classify(MANY)
            for each in classifier_pids():
                os.kill(each, signal.SIGTERM)
            until(lambda: not any(map(is_running, classifier_pids())))
            assert classify(FEW) == classify_many(FEW)
    finally:
        signal.signal(signal.SIGTERM, handled)


@pytest.mark.long
def test_this_process_classifies_if_the_child_processes_are_killed_while_they_start() -> None:
    with classifier_processes() as classify:
        for each in classifier_pids():
            os.kill(each, signal.SIGKILL)
        assert classify(MANY) == classify_many(MANY)
    assert classifier_pids() == []


@pytest.mark.long
def test_this_process_classifies_if_the_system_allows_no_more_processes() -> None:
    program = (
        "import os, resource\n"
        "from tests.ingest.classification.test_pool import *\n"
        "with classifier_processes() as classify:\n"
        "    print(classify(FEW) == classify_many(FEW))\n"  # also loads modules, which the other user may not read
        "if os.getuid() == 0:\n"
        "    os.setuid(65_534)  # the limit does not apply to root\n"
        "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n"
        "with classifier_processes() as classify:\n"
        "    print(classifier_pids(), classify(MANY) == classify_many(MANY))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "True\n[] True\n"


@pytest.mark.long
def test_child_processes_end_when_their_parent_is_killed() -> None:
    program = (
        "import os, signal\n"
        "from tests.ingest.classification.test_pool import MANY, classifier_pids, classifier_processes\n"
        "if __name__ == '__main__':\n"
        "    with classifier_processes() as classify:\n"
        "        classify(MANY)\n"
        "        print(*classifier_pids(), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # The child processes inherit the pipe of its standard output, which reaches its end when all have ended.
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    until(lambda: not any(map(is_running, pids)))
