"""Run a function for each item on some workers, repeat the items of workers that died, and yield in order.

A worker has one item at a time. The item of a worker that dies is repeated from its start. Therefore a function changes
nothing that a reader sees: it writes new files and returns their names, and the caller commits them.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

from warehouse.errors import WorkerDied

Item = TypeVar("Item")
Result = TypeVar("Result")
ATTEMPTS_MAX = 3
"""Number of workers whose death with the same item ends the run."""
AHEAD_MAX = 2
"""Number of items per worker that are started before the first of them has been yielded."""


class Worker(Protocol):
    """A process that runs one function call at a time. Function, item and result are pickled."""

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]": ...

    def has_died(self, error: BaseException) -> bool:
        """Return whether the error of a call means that the process died, and the call is to be repeated."""
        ...

    def restart(self) -> None:
        """Replace the process that died."""
        ...


OpenWorkers = Callable[[int], AbstractContextManager[Sequence[Worker]]]
"""Function that starts workers for a number of items, and ends them at the end of the block."""


def run(
    workers: Sequence[Worker],
    function: Callable[[Item], Result],
    items: Iterable[tuple[str, Item]],
    on_item: Callable[[str], None] = lambda name: None,
    *,
    is_ordered: bool = True,
) -> Iterator[tuple[str, Result]]:
    """Yield the name of each item with the result of the function, in the order of the items.

    If not `is_ordered`, results are yielded in the order in which they arrive: none waits for a slower item.

    Names are distinct. The next item is taken from `items` when a worker is idle. `on_item` is called with the name of
    an item when its result has arrived, in any order. An error of the function is raised in the place of the result,
    with a note that names the item.

    Raises:
        WorkerDied: ATTEMPTS_MAX workers died with the same item.
    """
    for name, outcome in _Run(workers, function, items, on_item, is_ordered=is_ordered).outcomes():
        if (error := outcome.exception()) is not None:
            error.add_note(f"in {name}")
        yield name, outcome.result()


def run_each(
    workers: Sequence[Worker], function: Callable[[Item], Result], items: Iterable[tuple[str, Item]]
) -> "Iterator[tuple[str, Future[Result]]]":
    """Yield the name of each item with a future that has the result or the error, in the order in which they arrive.

    The other items are run if one fails, also if it fails with `WorkerDied`: see `run`.
    """
    return _Run(workers, function, items, is_ordered=False, is_error_last=False).outcomes()


class _Run(Generic[Item, Result]):
    """State of a run: idle workers, running calls, and calls that have ended or must be repeated."""

    def __init__(
        self,
        workers: Sequence[Worker],
        function: Callable[[Item], Result],
        items: Iterable[tuple[str, Item]],
        on_item: Callable[[str], None] = lambda name: None,
        *,
        is_ordered: bool,
        is_error_last: bool = True,
    ) -> None:
        self._function, self._items, self._on_item = function, iter(items), on_item
        self._is_ordered, self._is_error_last = is_ordered, is_error_last
        self._idle, self._ahead_max = list(workers), AHEAD_MAX * len(workers)
        self._order, self._repeated = deque[str](), deque[tuple[str, Item]]()
        self._running: dict[Future[Result], tuple[Worker, str, Item]] = {}
        self._ended: dict[str, Future[Result]] = {}
        self._deaths, self._has_failed = Counter[str](), False

    def outcomes(self) -> "Iterator[tuple[str, Future[Result]]]":
        while True:
            self._start()
            if not self._order:
                return
            if (name := self._next_result()) is not None:
                self._order.remove(name)
                yield name, self._ended.pop(name)
            else:
                for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                    self._end(future)

    def _next_result(self) -> str | None:
        """Return the name of the item whose result is yielded next; None if that result has not arrived."""
        if self._is_ordered:
            return self._order[0] if self._order[0] in self._ended else None
        return next(iter(self._ended), None)

    def _start(self) -> None:
        """Give an item to each idle worker."""
        while self._idle and (item := self._next_item()):
            worker = self._idle.pop()
            self._running[worker.submit(self._function, item[1])] = worker, *item

    def _next_item(self) -> tuple[str, Item] | None:
        """Return an item to repeat, or a new one unless an error of an item is the last result."""
        if self._repeated:
            return self._repeated.popleft()
        if (self._has_failed and self._is_error_last) or len(self._order) >= self._ahead_max:
            return None
        item = next(self._items, None)
        if item is not None:
            self._order.append(item[0])
        return item

    def _end(self, future: "Future[Result]") -> None:
        """Store the result or the error of a call, or repeat the call if the process died."""
        worker, name, item = self._running.pop(future)
        self._idle.append(worker)
        error = future.exception()
        if error is not None and worker.has_died(error):
            worker.restart()
            self._deaths[name] += 1
            if self._deaths[name] < ATTEMPTS_MAX:
                self._repeated.append((name, item))
                return
            error = WorkerDied(f"{ATTEMPTS_MAX} worker processes died; the system log has the cause, often memory")
            future = Future[Result]()
            future.set_exception(error)
        self._ended[name] = future
        if error is None:
            self._on_item(name)
        else:
            self._has_failed = True
