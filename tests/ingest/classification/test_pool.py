"""User agents are told alike by this process and by others, and also if those die."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.classification import pool
from ingest.classification.pool import classify_many
from tests.waiting import until
from tests.warehouse.site import ROOT

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0"
SOME = ["GPTBot/1.3", FIREFOX, "", "curl/8.5", "\N{SNOWMAN}"]
MANY = [f"{agent} {number}" for number in range(pool.TOLD_AT_ONCE) for agent in SOME]
linux = pytest.mark.skipif(sys.platform != "linux", reason="there are no other processes")


def others() -> tuple[int, int]:
    """The process that this one forked, and the one that that did, once it has."""
    (first,) = multiprocessing.active_children()
    assert first.pid is not None
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children")
    return first.pid, int(until(lambda: children.read_text("ascii")))


def is_alive(pid: int) -> bool:
    """One that ended and that nobody has asked for is not."""
    return state(pid) not in {"", "Z"}


def state(pid: int) -> str:
    """`Z` of one that nobody has asked for, empty of none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def ticks(pid: int) -> int:
    """Of a processor, that it has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def await_end(pid: int) -> None:
    until(lambda: not is_alive(pid))


@pytest.fixture
def no_child_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("no_child_is_left")
@pytest.mark.parametrize("user_agents", [[], SOME, MANY], ids=["none", "few", "many"])
def test_other_processes_say_what_this_one_says_in_the_same_order(user_agents: list[str]) -> None:
    with pool.helped() as classify:
        assert classify(user_agents) == classify_many(user_agents)


@linux
def test_no_process_outlives_the_help() -> None:
    with pool.helped():
        pids = others()
        assert all(map(is_alive, pids))
    assert [state(pid) for pid in pids] == ["", ""]


@linux
@pytest.mark.usefixtures("no_child_is_left")
@pytest.mark.parametrize("killed", [[0], [1], [0, 1]], ids=["first", "second", "both"])
@pytest.mark.parametrize("user_agents", [SOME, MANY], ids=["few", "many"])
def test_who_is_left_says_what_a_killed_process_does_not(user_agents: list[str], killed: list[int]) -> None:
    with pool.helped() as classify:
        pids = others()
        for each in killed:
            os.kill(pids[each], signal.SIGKILL)
            await_end(pids[each])
        assert classify(user_agents) == classify_many(user_agents)
        assert classify(user_agents) == classify_many(user_agents)


@linux
def test_each_process_tells_some_and_ctrl_c_is_not_for_them() -> None:
    with pool.helped() as classify:
        pids = others()
        for pid in pids:
            os.kill(pid, signal.SIGINT)
        used = [ticks(pid) for pid in pids]
        assert classify(MANY) == classify_many(MANY)
        assert all(ticks(pid) > before for pid, before in zip(pids, used, strict=True))


@linux
def test_one_process_tells_where_the_system_allows_no_second(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fork, begun = os.fork, os.getpid()

    def fork_once() -> int:
        if os.getpid() != begun:
            raise BlockingIOError("Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", fork_once)
    with pool.helped() as classify:
        (first,) = multiprocessing.active_children()
        assert first.pid is not None
        assert classify(MANY) == classify_many(MANY)
        assert is_alive(first.pid)
    assert capfd.readouterr().err == ""


@linux
def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "END_WAIT_S", 0.5)
    with pool.helped():
        pids = others()
        os.kill(pids[0], signal.SIGSTOP)
    for pid in pids:
        await_end(pid)


@linux
def test_other_processes_end_with_this_one_when_it_is_killed() -> None:
    program = (
        "import os, signal, threading, time; from ingest.classification import pool\n"
        "from tests.ingest.classification.test_pool import MANY, others\n"
        "with pool.helped() as classify:\n"
        "    print(*others(), flush=True)\n"
        "    threading.Thread(target=classify, args=(MANY * 4,)).start(); time.sleep(0.2)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    # Its output is a pipe that all hold: it ends when all have.
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert len(done.stdout.split()) == 2
    assert done.stderr == ""


def test_nothing_with_threads_is_loaded_before_the_fork() -> None:
    program = "import sys, api.cli.main, api.cli.log_import; print(sorted({'pyarrow', 'sqlalchemy'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
