"""Results come in the order of the items, also if workers die, and an error names its item."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from tests.warehouse.batch.tasks import divide, square
from warehouse.batch import items
from warehouse.batch.items import Item, Result
from warehouse.batch.processes import ThisProcess
from warehouse.errors import WorkerDied

NUMBERS = {str(number): number for number in range(5)}


class Dying(ThisProcess):
    """A worker whose process dies at the first `times` calls."""

    def __init__(self, times: int) -> None:
        self.times, self.restarts = times, 0

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        if self.times == 0:
            return super().submit(function, item)
        self.times -= 1
        future = Future[Result]()
        future.set_exception(ConnectionResetError())
        return future

    def has_died(self, error: BaseException) -> bool:
        return isinstance(error, ConnectionResetError)

    def restart(self) -> None:
        self.restarts += 1


class Late(ThisProcess):
    """A worker whose first call ends when `Prompt` has its second one."""

    def __init__(self) -> None:
        self.ends: list[Callable[[], None]] = []

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        future = Future[Result]()
        self.ends.append(lambda: future.set_result(function(item)))
        return future


class Prompt(ThisProcess):
    def __init__(self, late: Late) -> None:
        self.late, self.calls = late, 0

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        self.calls += 1
        if self.calls > 1 and self.late.ends:
            self.late.ends.pop()()
        return super().submit(function, item)


def test_results_are_in_the_order_of_the_items() -> None:
    seen: list[str] = []
    late = Late()
    results = list(items.run([Prompt(late), late], square, [(name, NUMBERS[name]) for name in "012"], seen.append))
    assert results == [("0", 0), ("1", 1), ("2", 4)]
    assert seen[0] == "1"


def test_results_without_an_order_do_not_wait_for_a_slow_item() -> None:
    late = Late()
    workers = [ThisProcess(), late]
    results = items.run(workers, square, NUMBERS.items(), is_ordered=False)
    first = [next(results) for _ in range(items.AHEAD_MAX * 2 - 1)]
    late.ends.pop()()
    rest = list(results)
    assert first == [("1", 1), ("2", 4), ("3", 9)]
    assert sorted(rest) == [("0", 0), ("4", 16)]


def test_no_items_have_no_results() -> None:
    assert list(items.run([ThisProcess()], square, ())) == []


def test_item_of_a_dead_worker_is_repeated() -> None:
    dying = Dying(2)
    assert list(items.run([dying], square, NUMBERS.items())) == [(name, n * n) for name, n in NUMBERS.items()]
    assert dying.restarts == 2


def test_item_with_which_three_workers_die_is_named() -> None:
    with pytest.raises(WorkerDied, match=r"^3 worker processes died") as caught:
        list(items.run([Dying(3)], square, NUMBERS.items()))
    assert caught.value.__notes__ == ["in 0"]


def test_error_names_its_item() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(items.run([ThisProcess()], divide, [("nought", 0)]))
    assert caught.value.__notes__ == ["in nought"]


def test_error_comes_after_the_results_of_earlier_items_and_starts_no_more() -> None:
    taken: list[str] = []

    def numbers() -> Iterator[tuple[str, int]]:
        for name, number in {"one": 1, "nought": 0, "two": 2, "four": 4}.items():
            taken.append(name)
            yield name, number

    results = items.run([ThisProcess()], divide, numbers())
    assert next(results) == ("one", 1)
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert taken == ["one", "nought"]


def test_each_item_is_run_though_others_have_failed() -> None:
    numbers = [("nought", 0), ("one", 1), ("two", 2)]
    outcomes = dict(items.run_each([ThisProcess()], divide, numbers))
    assert isinstance(outcomes.pop("nought").exception(), ZeroDivisionError)
    assert {name: outcome.result() for name, outcome in outcomes.items()} == {"one": 1, "two": 0.5}


def test_each_item_is_run_though_three_workers_have_died_with_another() -> None:
    dying = Dying(3)
    outcomes = dict(items.run_each([dying], square, [("one", 1), ("two", 2)]))
    assert isinstance(outcomes["one"].exception(), WorkerDied)
    assert outcomes["two"].result() == 4
    assert dying.restarts == 3


def test_item_of_a_dead_worker_is_repeated_though_a_later_item_has_failed() -> None:
    failing = ThisProcess()
    results = items.run([failing, Dying(1)], divide, [("one", 1), ("nought", 0)])
    assert next(results) == ("one", 1)
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_items_are_taken_while_few_results_wait() -> None:
    taken: list[str] = []

    def numbers() -> Iterator[tuple[str, int]]:
        for number in range(100):
            taken.append(str(number))
            yield str(number), number

    late = Late()
    results = items.run([Prompt(late), late], square, numbers())
    assert next(results) == ("0", 0)
    assert len(taken) <= 1 + items.AHEAD_MAX * 2
