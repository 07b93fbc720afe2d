"""Items run in any executor, again if their process died, and each result or error comes with its item."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from tests.warehouse.batch.tasks import divide, square
from warehouse.batch import actions, driver
from warehouse.batch.driver import THIS_PROCESS, Executor, Item, Result, ThisProcess
from warehouse.errors import WorkerDied

NUMBERS = range(5)


class Dying(ThisProcess):
    """An executor whose process dies at the first `times` calls."""

    def __init__(self, times: int, size: int = 1) -> None:
        self.times, self.size, self.deaths = times, size, 0

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        if self.deaths == self.times:
            return super().submit(function, item)
        self.deaths += 1
        future = Future[Result]()
        future.set_exception(ConnectionResetError())
        return future

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, ConnectionResetError)


class Late(ThisProcess):
    """An executor of two calls at a time, whose first call ends when `end` is called, or at call number `until`."""

    size = 2

    def __init__(self, until: int | None = None) -> None:
        self.ends: list[Callable[[], None]] = []
        self.calls, self.until = 0, until

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        self.calls += 1
        if self.calls == self.until:
            self.end()
        if self.calls > 1:
            return super().submit(function, item)
        future = Future[Result]()
        self.ends.append(lambda: future.set_result(function(item)))
        return future

    def end(self) -> None:
        self.ends.pop()()


def results(executor: Executor, *numbers: int, is_ordered: bool = False) -> list[tuple[int, int]]:
    outcomes = driver.run(executor, square, numbers, is_ordered=is_ordered)
    return [(number, outcome.result()) for number, outcome in outcomes]


def test_results_are_in_the_order_of_the_items() -> None:
    assert results(Late(until=3), 0, 1, 2, is_ordered=True) == [(0, 0), (1, 1), (2, 4)]


def test_results_without_an_order_do_not_wait_for_a_slow_item() -> None:
    late = Late()
    outcomes = driver.run(late, square, NUMBERS)
    first = [next(outcomes)[0] for _ in range(4)]
    late.end()
    assert first == [1, 2, 3, 4]
    assert [(number, outcome.result()) for number, outcome in outcomes] == [(0, 0)]


def test_no_items_have_no_results() -> None:
    assert results(THIS_PROCESS) == []


@pytest.mark.parametrize("size", [1, 2])
def test_item_of_a_dead_process_is_repeated(size: int) -> None:
    dying = Dying(2, size)
    assert sorted(results(dying, *NUMBERS)) == [(number, number * number) for number in NUMBERS]
    assert dying.deaths == 2


def test_item_with_which_three_processes_die_fails_and_the_others_do_not() -> None:
    dying = Dying(3)
    outcomes = dict(driver.run(dying, square, [1, 2]))
    with pytest.raises(WorkerDied, match=r"^3 worker processes died"):
        outcomes[1].result()
    assert outcomes[2].result() == 4
    assert dying.deaths == 3


def test_each_item_is_run_though_others_have_failed() -> None:
    outcomes = dict(driver.run(THIS_PROCESS, divide, [0, 1, 2]))
    assert isinstance(outcomes.pop(0).exception(), ZeroDivisionError)
    assert {number: outcome.result() for number, outcome in outcomes.items()} == {1: 1, 2: 0.5}


def taken_from(taken: list[int]) -> Iterator[int]:
    for number in range(100):
        taken.append(number)
        yield number


def test_item_is_taken_in_this_process_when_the_one_before_has_been_used() -> None:
    taken: list[int] = []
    for count, _ in enumerate(driver.run(THIS_PROCESS, square, taken_from(taken)), start=1):
        assert len(taken) == count


def test_items_are_taken_while_few_results_wait() -> None:
    taken: list[int] = []
    late = Late()
    outcomes = driver.run(late, square, taken_from(taken), is_ordered=True)
    late.until = 3
    assert next(outcomes)[0] == 0
    assert len(taken) <= 1 + driver.AHEAD


def test_error_of_the_items_is_raised_after_the_results_of_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield from (1, 2)
        raise KeyError("lost")

    done = list[tuple[int, int]]()
    with pytest.raises(KeyError, match="lost"):
        done.extend((number, outcome.result()) for number, outcome in driver.run(Late(2), square, items()))
    assert done == [(1, 1), (2, 4)]


def test_each_result_is_committed_and_an_error_names_its_item() -> None:
    committed: list[tuple[int, float]] = []
    commits = driver.commits(THIS_PROCESS, divide, [4, 0, 2], lambda *result: committed.append(result))
    with pytest.raises(ZeroDivisionError) as caught:
        actions.run_all(commits)
    assert caught.value.__notes__ == ["in 0"]
    assert committed == [(4, 0.25), (2, 0.5)]
