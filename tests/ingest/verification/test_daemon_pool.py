"""Calls run in a few threads, and a call that never ends does not keep its process from ending."""

import subprocess
import sys
from concurrent.futures import wait
from threading import Barrier, Event, current_thread

import pytest

from ingest.verification.daemon_pool import DaemonPool

HANGING = """
from threading import Event
from ingest.verification.reverse_dns import ReverseDns
begun = Event()
def name_of(address):
    begun.set()
    Event().wait()
dns = ReverseDns(0, name_of)
dns.pattern("Googlebot", "66.249.66.1")
begun.wait()
dns.close()
"""


def test_calls_run_at_once_in_at_most_so_many_threads() -> None:
    barrier, names = Barrier(3), set()

    def call(number: int) -> int:
        barrier.wait(30)
        names.add(current_thread().name)
        return number

    pool = DaemonPool(call, 3, "test")
    futures = [pool.submit(number) for number in range(30)]
    assert [future.result(30) for future in futures] == list(range(30))
    assert names == {"test-1", "test-2", "test-3"}


def test_error_of_a_call_is_that_of_its_future_and_the_thread_goes_on() -> None:
    pool = DaemonPool(int, 1, "test")
    with pytest.raises(ValueError, match="invalid literal"):
        pool.submit("x").result(30)
    assert pool.submit("7").result(30) == 7


def test_calls_that_have_not_begun_are_cancelled() -> None:
    begun, release = Event(), Event()

    def call(number: int) -> bool:
        begun.set()
        return release.wait(30)

    pool = DaemonPool(call, 1, "test")
    first, second = pool.submit(1), pool.submit(2)
    assert begun.wait(30)
    pool.cancel()
    release.set()
    assert first.result(30)
    assert wait([second], 30).done == {second}
    assert second.cancelled()
    assert pool.submit(3).result(30)


def test_process_ends_beside_a_lookup_that_never_ends() -> None:
    subprocess.run([sys.executable, "-c", HANGING], check=True, timeout=30)
