"""Executor in a Ray cluster: each call is a task, in a process on any machine of the cluster.

Ray is the extra `ray`, and is imported once a command uses it. This module connects to a cluster that runs, and starts
none. Ray repeats no task by itself: `driver.run` repeats tasks whose process or machine died.
"""

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from traceback import format_exception
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from warehouse.batch import reach
from warehouse.batch.driver import Executor, call
from warehouse.errors import ClusterUnusable
from warehouse.lake.roots import Root

Item = TypeVar("Item")
Result = TypeVar("Result")
CONNECT_S = 10.0
"""Timeout for a connection to the cluster, in seconds."""
CONNECTS_MAX = 5
"""Maximum number of attempts to connect to the cluster's client server. On a busy machine about one of ten fails."""
CHECK_S = 60.0
"""Timeout for the check of a machine, in seconds: Ray starts a process, which loads the libraries."""


class RayTasks:
    """The executor that runs `size` tasks at a time. Ray chooses the process, or waits until one has a free core."""

    def __init__(self, ray: Any, size: int) -> None:
        self.size, self._ray = size, ray
        self._task = ray.remote(_outcome).options(num_cpus=1, max_retries=0)
        self._running: dict[Future[Any], Any] = {}

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        future = Future[Result]()
        task = self._running[future] = self._task.remote(function, item)
        future.add_done_callback(self._running.pop)
        task.future().add_done_callback(partial(_resolve, future))
        return future

    def has_died(self, error: BaseException) -> bool:
        errors = self._ray.exceptions
        return isinstance(
            error, (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError, errors.ObjectLostError)
        )

    def close(self) -> None:
        """End the processes of the tasks that run."""
        for task in list(self._running.values()):
            self._ray.cancel(task, force=True)


@contextmanager
def ray_tasks(address: str, count: int | None, root: Root) -> Iterator[Executor]:
    """Yield an executor of `count` tasks at a time, by default as many as the cluster has cores.

    Each machine of the cluster is checked first: its processes must read and write the lake at `root`. Tasks that run
    at the end of the block are ended. In the block, what is printed to standard output goes to standard error.

    Raises:
        ClusterUnusable: Ray is not installed, the cluster does not answer, or one of its machines cannot use the lake.
    """
    with redirect_stdout(sys.stderr):  # Ray prints that a process died, beside the result of the command
        ray = _connect(address)
        try:
            _check(ray, root)
            tasks = RayTasks(ray, count or max(1, int(ray.cluster_resources().get("CPU", 0))))
            try:
                yield tasks
            finally:
                tasks.close()
        finally:
            ray.shutdown()


def require_installed() -> None:
    """Raise ClusterUnusable if Ray is not installed."""
    if find_spec("ray") is None:
        raise ClusterUnusable('Ray is not installed: pip install "readership[ray]"')


def _connect(address: str) -> Any:
    """Import Ray, and connect to the cluster.

    This process does not print the output of Ray and of tasks, which is in Ray's log files.

    Raises: ClusterUnusable
    """
    require_installed()
    _require_listening(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # or Ray may send statistics to its makers
    import ray  # noqa: PLC0415  # an extra, which takes 0.5 s to import

    try:
        initialize(partial(ray.init, address, log_to_driver=False, logging_level=logging.ERROR))
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = " ".join(str(error).split())  # lines of a message about versions
        raise ClusterUnusable(
            f"cannot connect to the Ray cluster at {address} (docs/ray.md has the addresses and the token): {reason}"
        ) from None
    return ray


def initialize(init: Callable[[], object]) -> None:
    """Call `ray.init`, again if the cluster's client server could not start a server process for this client.

    Some of these processes die when they are forked: https://github.com/ray-project/ray/issues/63202. An address
    without `ray://` uses no such process.

    Raises:
        ConnectionAbortedError: CONNECTS_MAX processes died.
    """
    is_retried = retry_if_exception_type(ConnectionAbortedError)
    Retrying(retry=is_retried, stop=stop_after_attempt(CONNECTS_MAX), reraise=True)(init)


def _require_listening(address: str) -> None:
    """Raise ClusterUnusable if nothing listens at an address: Ray tries for four minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except OSError as error:
        raise ClusterUnusable(f"the Ray cluster at {address} does not answer: {error.strerror or error}") from None


def _check(ray: Any, root: Root) -> None:
    """Raise ClusterUnusable unless a process on each machine of the cluster reads and writes the lake."""
    usable = (node for node in ray.nodes() if node["Alive"] and float(node["Resources"].get("CPU", 0)) >= 1)
    machines = {node["NodeID"]: node["NodeManagerAddress"] for node in usable}
    if not machines:
        raise ClusterUnusable("no machine of the Ray cluster has a core for tasks: see ray start --num-cpus")
    with reach.probe(root) as probe:
        answers = {node: _on(ray, node).remote(probe, node) for node in machines}
        for node, answer in answers.items():
            try:
                fault = ray.get(answer, timeout=CHECK_S) or reach.fault(probe, node)
            except ray.exceptions.RayError as error:
                fault = f"does not run tasks of Readership: {str(error).strip().rpartition(chr(10))[2]}"
            if fault:
                raise ClusterUnusable(f"the machine {machines[node]} of the Ray cluster {fault}")


def _on(ray: Any, node: str) -> Any:
    """Return `reach.answer` as a task that runs on one machine."""
    place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(reach.answer).options(num_cpus=0, scheduling_strategy=place)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Result of a call, or its error. An error that a task raises would come wrapped in one of Ray."""

    result: Any = None
    error: Exception | None = None
    traceback: str = ""
    """Traceback of the error, which is not pickled with it."""


class TaskTraceback(Exception):
    """Traceback of a task as text: the cause of the task's error, so that Python prints both."""


def _outcome(function: Callable[[Item], Result], item: Item) -> _Outcome:
    try:
        return _Outcome(call(function, item))
    except Exception as error:  # noqa: BLE001  # the caller of `driver.run` gets it
        return _Outcome(error=error, traceback="".join(format_exception(error)))


def _resolve(future: "Future[Result]", done: "Future[_Outcome]") -> None:
    """Give a future the outcome of a task, or the error with which the task's process died."""
    error = done.exception()
    outcome = _Outcome() if error else done.result()
    if outcome.error is not None:
        outcome.error.__cause__ = TaskTraceback(f"\n{outcome.traceback}")
    if error is not None or outcome.error is not None:
        future.set_exception(error or outcome.error)
    else:
        future.set_result(outcome.result)
