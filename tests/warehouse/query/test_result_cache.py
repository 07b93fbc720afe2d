"""The result cache is limited by bytes: strings count with their length, and slices with all memory that they use."""

import threading
import weakref
from collections.abc import Callable
from contextvars import Context, copy_context

import pyarrow as pa
import pytest

from tests.processes import freed_memory
from warehouse.errors import SlowReport
from warehouse.query import engine, result_cache
from warehouse.query.result_cache import EMPTY_TABLE_BYTES, ResultCache

MB = 1_000_000
PATH = "/" + "x" * 2_047


def long_paths(rows: int) -> pa.Table:
    """Return a table of about 2 kB a row."""
    return pa.table({"path": [PATH] * rows, "human": pa.array([1] * rows, pa.int64())})


def never() -> pa.Table:
    raise AssertionError("this table is in the cache")


def counting(table: Callable[[], pa.Table]) -> tuple[Callable[[], pa.Table], list[int]]:
    """Return `table` and a list that grows by one with each call of it."""
    calls: list[int] = []

    def compute() -> pa.Table:
        calls.append(1)
        return table()

    return compute, calls


def context_of(caller: engine.Caller) -> Context:
    context = copy_context()
    context.run(engine.CALLER.set, caller)
    return context


@pytest.mark.parametrize("slow", [Context(), context_of(engine.Caller(accepts_slow=True))], ids=["default", "caller"])
def test_fast_report_does_not_wait_for_a_result_that_a_slow_one_computes(slow: Context) -> None:
    get = ResultCache(10 * MB)
    begun, may_end = threading.Event(), threading.Event()

    def compute() -> pa.Table:
        engine.CALLER.get().is_slow = True
        begun.set()
        may_end.wait()
        return long_paths(1)

    thread = threading.Thread(target=slow.run, args=(get, 0, compute))
    thread.start()
    begun.wait()
    fast = context_of(engine.Caller(accepts_slow=False))
    try:
        with pytest.raises(SlowReport):
            fast.run(get, 0, never)
    finally:
        may_end.set()
        thread.join()
    assert fast.run(get, 0, never).num_rows == 1


def test_tables_of_long_paths_are_evicted_by_their_bytes() -> None:
    get = ResultCache(10 * MB)
    tables = [weakref.ref(get(number, lambda: long_paths(1_000))) for number in range(30)]
    assert [number for number, table in enumerate(tables) if table() is not None] == [26, 27, 28, 29]


def test_table_that_was_read_last_is_evicted_last() -> None:
    get = ResultCache(10 * MB)
    for number in range(4):
        get(number, lambda: long_paths(1_000))
    get(0, never)
    get(4, lambda: long_paths(1_000))
    compute, calls = counting(lambda: long_paths(1_000))
    get(0, never)
    get(1, compute)
    assert len(calls) == 1


def test_threads_that_ask_for_one_result_compute_it_once() -> None:
    get, begun = ResultCache(10 * MB), threading.Barrier(4)
    compute, calls = counting(lambda: long_paths(1))

    def ask() -> None:
        begun.wait()
        assert get("key", compute).num_rows == 1

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_error_of_a_computation_is_raised_and_the_next_caller_computes_again() -> None:
    get = ResultCache(10 * MB)
    with pytest.raises(ZeroDivisionError):
        get("key", lambda: long_paths(1 // 0))
    assert get("key", lambda: long_paths(2)).num_rows == 2


def test_table_larger_than_the_cache_is_returned_and_evicts_no_other() -> None:
    get = ResultCache(10 * MB)
    get("small", lambda: long_paths(10))
    compute, calls = counting(lambda: long_paths(6_000))
    assert [get("large", compute).num_rows for _ in range(2)] == [6_000, 6_000]
    assert len(calls) == 2
    assert get("small", never).num_rows == 10


def test_slice_counts_with_the_memory_of_the_whole_table() -> None:
    get = ResultCache(10 * MB)
    slices = [weakref.ref(get(number, lambda: long_paths(1_000).slice(0, 1))) for number in range(10)]
    assert sum(each() is not None for each in slices) == 4


def test_many_tables_without_rows_are_limited_too() -> None:
    get = ResultCache(100 * EMPTY_TABLE_BYTES)
    tables = [weakref.ref(get(number, lambda: long_paths(0))) for number in range(1_000)]
    assert 50 <= sum(table() is not None for table in tables) <= 100


def test_result_that_replaces_another_is_evicted_if_it_is_larger_than_the_cache() -> None:
    get = ResultCache(10 * MB)
    for rows in (1_000, 2_000):
        get.put("key", long_paths(rows))
        assert get.get("key").num_rows == rows
    get.put("key", long_paths(6_000))
    assert get.get("key") is None


def test_release_returns_freed_memory_to_the_operating_system() -> None:
    freed_memory.leave_freed_memory()
    before = freed_memory.resident_mib()
    result_cache.release_memory()
    assert freed_memory.resident_mib() < before - freed_memory.FREED_MIB / 2
