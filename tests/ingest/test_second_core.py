"""User agents are told alike by one process and by two, and also if the other dies."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ingest import second_core
from ingest.second_core import described
from tests.warehouse.site import ROOT

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"
SOME = ["GPTBot/1.3", FIREFOX, "", "curl/8.5", "\N{SNOWMAN}"]
MANY = [f"{agent} {number}" for number in range(second_core.SHARED_MIN // 2) for agent in SOME]


@pytest.fixture
def no_child_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("no_child_is_left")
@pytest.mark.parametrize("user_agents", [[], SOME, MANY], ids=["none", "few", "many"])
def test_two_processes_say_what_one_says_in_the_same_order(user_agents: list[str]) -> None:
    with second_core.helped() as describe:
        assert describe(user_agents) == described(user_agents)


@pytest.mark.usefixtures("no_child_is_left")
@pytest.mark.skipif(sys.platform != "linux", reason="there is no second process")
@pytest.mark.parametrize("user_agents", [SOME, MANY], ids=["few", "many"])
def test_one_process_says_it_alone_once_the_other_was_killed(user_agents: list[str]) -> None:
    with second_core.helped() as describe:
        (other,) = multiprocessing.active_children()
        assert other.pid is not None
        os.kill(other.pid, signal.SIGKILL)
        other.join()
        assert describe(user_agents) == described(user_agents)
        assert describe(user_agents) == described(user_agents)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no second process")
def test_second_process_ends_with_the_first_when_that_is_killed() -> None:
    program = (
        "import multiprocessing, os, signal; from ingest import second_core\n"
        "with second_core.helped() as describe:\n"
        "    print(multiprocessing.active_children()[0].pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    # Its output is a pipe that both hold: it ends when both have.
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.strip().isdigit()


def test_nothing_with_threads_is_loaded_before_the_fork() -> None:
    program = "import sys, api.cli, api.log_import; print(sorted({'polars', 'pyarrow', 'sqlalchemy'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
