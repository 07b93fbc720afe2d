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
from warehouse.query.result_cache import EMPTY_TABLE_BYTES, FIRST_SHARE, ResultCache

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


def test_fast_report_does_not_wait_for_a_result_that_a_slow_one_computes() -> None:
    get, slow = ResultCache(10 * MB), engine.Caller(accepts_slow=True)
    begun, may_end = threading.Event(), threading.Event()

    def compute() -> pa.Table:
        slow.is_slow = True
        begun.set()
        may_end.wait()
        return long_paths(1)

    thread = threading.Thread(target=context_of(slow).run, args=(get, 0, compute))
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


def test_results_of_many_ranges_displace_no_month() -> None:
    get = ResultCache(10 * MB)
    for number in range(3):
        get(("month", number), lambda: long_paths(1_000))
    ranges = [weakref.ref(get(number, lambda: long_paths(500), evict_first=True)) for number in range(30)]
    for number in range(3):
        get(("month", number), never)
    assert [number for number, table in enumerate(ranges) if table() is not None] == [27, 28, 29]


def test_range_that_exceeds_the_share_of_the_ranges_displaces_a_range() -> None:
    get = ResultCache(10 * MB)
    for number in range(4):
        get(("month", number), lambda: long_paths(1_000))
    for number in range(2):  # 1.4 MB each; each alone is within the share
        get(number, lambda: long_paths(700), evict_first=True)
    assert get.get(0) is None
    for key in (*(("month", number) for number in range(4)), 1):
        get(key, never)


def test_months_displace_ranges_down_to_their_share() -> None:
    get = ResultCache(10 * MB)
    ranges = [weakref.ref(get(number, lambda: long_paths(100), evict_first=True)) for number in range(40)]
    months = [weakref.ref(get(("month", number), lambda: long_paths(1_000))) for number in range(10)]
    assert sum(table() is not None for table in ranges) * 0.2 == pytest.approx(FIRST_SHARE * 10, abs=0.5)
    assert [number for number, table in enumerate(months) if table() is not None] == [7, 8, 9]


def test_range_that_was_read_last_is_evicted_last() -> None:
    get = ResultCache(10 * MB)
    for number in range(4):
        get(number, lambda: long_paths(1_000), evict_first=True)
    get(0, never)
    get("month", lambda: long_paths(1_000))
    get(0, never)
    compute, calls = counting(lambda: long_paths(1_000))
    get(1, compute)
    assert len(calls) == 1


def test_costly_result_larger_than_the_cache_is_stored_beside_the_others() -> None:
    get = ResultCache(10 * MB)
    get("costly", lambda: long_paths(6_000), is_costly=True)
    for number in range(30):
        get(number, lambda: long_paths(1_000))
    get("costly", never)
    get("part", lambda: long_paths(10), "costly")
    get("part", never)


def test_only_the_last_costly_result_larger_than_the_cache_is_stored() -> None:
    get = ResultCache(10 * MB)
    first = weakref.ref(get("first", lambda: long_paths(6_000), is_costly=True))
    part = weakref.ref(get("part", lambda: long_paths(10), "first"))
    get("second", lambda: long_paths(6_000), is_costly=True)
    assert first() is None
    assert part() is None
    get.put("second", long_paths(7_000))
    assert get("second", never).num_rows == 7_000
    get.put("second", long_paths(10))
    assert get("second", never).num_rows == 10


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


def test_result_is_evicted_with_its_owner() -> None:
    get = ResultCache(10 * MB)
    get("owner", lambda: long_paths(1_000))
    owned = weakref.ref(get("owned", lambda: long_paths(1_000), "owner"))
    for number in range(4):
        get(number, lambda: long_paths(1_000))
        get("owned", lambda: long_paths(1_000), "owner")  # read last, unlike its owner
    assert owned() is None
    compute, calls = counting(lambda: long_paths(1))
    get("owned", compute, "owner")
    get("owned", compute, "owner")
    assert len(calls) == 2  # it is not stored without its owner


def test_result_that_has_grown_is_measured_again_and_removed_if_it_is_larger_than_the_cache() -> None:
    class Grown:
        nbytes = 1 * MB

    get, result, calls = ResultCache(10 * MB), Grown(), counting(lambda: long_paths(1))
    get.put("grown", result)
    get.put("other", long_paths(1_000))
    get("owned", calls[0], "grown")
    result.nbytes = 9 * MB
    get.put("grown", result)
    assert (get.get("grown"), get.get("other")) == (result, None)
    result.nbytes = 11 * MB
    get.put("grown", result)
    assert get.get("grown") is get.get("owned") is None


def test_release_returns_freed_memory_to_the_operating_system() -> None:
    freed_memory.leave_freed_memory()
    before = freed_memory.resident_mib()
    result_cache.release_memory()
    assert freed_memory.resident_mib() < before - freed_memory.FREED_MIB / 2
