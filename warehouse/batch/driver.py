"""Run a function for each item in an executor: in this process, in child processes, or in a Ray cluster.

The function changes nothing that a reader sees: it writes new files and returns their names, and this process commits
them. The item of a process that died is therefore simply repeated.
"""

import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Generic, Protocol, TypeVar

from warehouse.batch.actions import Action
from warehouse.errors import ItemFailed, WorkerDied

Item = TypeVar("Item")
Result = TypeVar("Result")
ATTEMPTS_MAX = 3
"""Number of processes whose death with the same item fails the item."""
AHEAD = 2
"""Number of items that are started, for each further call at a time, before the first of them has been yielded."""


class Executor(Protocol):
    """A place where `size` calls run at the same time. Function, item and result are pickled for another process."""

    @property
    def size(self) -> int: ...

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]": ...

    def has_died(self, error: BaseException) -> bool:
        """Return whether the error of a call means that its process died."""
        ...


OpenExecutor = Callable[[], AbstractContextManager[Executor]]
"""Function that opens an executor, and ends its processes at the end of the block."""


class ThisProcess:
    """The executor that runs each call in this process, before `submit` returns."""

    size = 1

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        future = Future[Result]()
        try:
            future.set_result(function(item))
        except Exception as error:  # noqa: BLE001  # the caller of `run` gets it
            future.set_exception(error)
        return future

    def has_died(self, error: BaseException) -> bool:
        return False


THIS_PROCESS = ThisProcess()


def call(function: Callable[[Item], Result], item: Item) -> Result:
    """Return the result of a function. An error that cannot be unpickled would end the process, and is replaced.

    Raises:
        ItemFailed: the function raised such an error.
    """
    try:
        return function(item)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301  # our own error
        except Exception:  # noqa: BLE001  # the constructor of an error may raise anything
            raise ItemFailed(str(error)) from None
        raise


def run(
    executor: Executor, function: Callable[[Item], Result], items: Iterable[Item], *, is_ordered: bool = False
) -> "Iterator[tuple[Item, Future[Result]]]":
    """Yield each item with its future, which has the result or the error, in the order in which they arrive.

    If `is_ordered`, they arrive in the order of the items. The next item is taken when the executor has room for it.
    An item with which ATTEMPTS_MAX processes died has the error WorkerDied. An error of the iterator of the items is
    raised when all taken items have been yielded.
    """
    faults: list[Exception] = []
    todo, taken, deaths = _until_fault(items, faults), deque[_Taken[Item, Result]](), Counter[_Taken[Item, Result]]()
    running: dict[Future[Result], _Taken[Item, Result]] = {}
    while True:
        room = min(executor.size - len(running), 1 + AHEAD * (executor.size - 1) - len(taken))
        for item in islice(todo, room):
            taken.append(_Taken(item))
            running[executor.submit(function, item)] = taken[-1]
        if not taken:
            if faults:
                raise faults[0]
            return
        ended = (each for each in islice(taken, 1 if is_ordered else None) if each.future.done())
        if each := next(ended, None):
            taken.remove(each)
            yield each.item, each.future
            continue
        for call in wait(running, return_when=FIRST_COMPLETED).done:
            each, error = running.pop(call), call.exception()
            if error is not None and executor.has_died(error):
                deaths[each] += 1
                if deaths[each] < ATTEMPTS_MAX:
                    running[executor.submit(function, each.item)] = each
                    continue
                error = WorkerDied(f"{ATTEMPTS_MAX} worker processes died; the system log has the cause, often memory")
            if error is None:
                each.future.set_result(call.result())
            else:
                each.future.set_exception(error)


def _until_fault(items: Iterable[Item], faults: list[Exception]) -> Iterator[Item]:
    try:
        yield from items
    except Exception as error:  # noqa: BLE001  # `run` raises it
        faults.append(error)


@dataclass(frozen=True, slots=True, eq=False)
class _Taken(Generic[Item, Result]):
    """An item that was taken, and the future that `run` yields for it, which outlives the processes that die."""

    item: Item
    future: "Future[Result]" = field(default_factory=Future)


def commits(
    executor: Executor,
    function: Callable[[Item], Result],
    items: Iterable[Item],
    commit: Callable[[Item, Result], object],
    on_done: Callable[[int], object] = lambda done: None,
) -> Iterator[Action]:
    """Yield a step for each item, as soon as its result arrives, which calls `commit` with the item and the result.

    The name of the action is `str(item)`. The error of the function is an error of the action: see `actions.run_all`.
    `on_done` is called after each step, also a failed one, with the number of items done.
    """
    for done, (item, future) in enumerate(run(executor, function, items), start=1):
        yield str(item), partial(_commit, commit, item, future)
        on_done(done)


def _commit(commit: Callable[[Item, Result], object], item: Item, future: "Future[Result]") -> None:
    commit(item, future.result())
