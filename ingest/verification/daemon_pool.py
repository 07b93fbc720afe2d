"""Pool of daemon threads, for calls that cannot be interrupted, such as those of the system's resolver.

A process that ends joins the threads of `concurrent.futures.ThreadPoolExecutor`: a name server that does not answer
would delay the end of a service for as long as the resolver waits. Daemon threads are not joined.
"""

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Generic, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class DaemonPool(Generic[Argument, Result]):
    """Pool of at most `threads_max` daemon threads that call `function`. A thread is started when it is needed."""

    def __init__(self, function: Callable[[Argument], Result], threads_max: int, name: str) -> None:
        self._function, self._threads_max, self._name = function, threads_max, name
        self._calls: SimpleQueue[tuple[Future[Result], Argument]] = SimpleQueue()
        self._lock = Lock()
        self._threads = 0
        self._unfinished = 0
        """Number of calls that have not ended."""

    def submit(self, argument: Argument) -> Future[Result]:
        """Return the future of a call with the argument."""
        future: Future[Result] = Future()
        with self._lock:
            self._unfinished += 1
            if self._threads < min(self._threads_max, self._unfinished):
                self._threads += 1
                Thread(target=self._run, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._calls.put((future, argument))
        return future

    def cancel(self) -> None:
        """Cancel the calls that have not begun."""
        while True:
            try:
                future, _ = self._calls.get_nowait()
            except Empty:
                return
            future.cancel()
            future.set_running_or_notify_cancel()  # without it, `concurrent.futures.wait` would wait for the future
            self._end_call()

    def _run(self) -> None:
        while True:
            future, argument = self._calls.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(self._function(argument))
                except BaseException as error:  # noqa: BLE001  # it is raised again by Future.result
                    future.set_exception(error)
            self._end_call()

    def _end_call(self) -> None:
        with self._lock:
            self._unfinished -= 1
