"""Classification of user agents in child processes. Threads would not run in parallel: the parsers are Python code."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.synchronize import Semaphore

from warehouse.batch.parent import follow_parent, forking

Attributes = tuple[str | None, ...]
"""The columns of `warehouse.schema.CLASSIFICATION` without the user agent, in the order of the schema."""
Classifier = Callable[[Sequence[str]], list[Attributes]]
"""A function that returns the attributes of each user agent, in the same order."""
PROCESSES = 2
BATCH_USER_AGENTS = 2_000
"""Number of user agents of a task, which takes some 50 ms."""


def classify_many(user_agents: Sequence[str]) -> list[Attributes]:
    """Return the attributes of each user agent, classified in the process that calls this function."""
    from ingest.classification.user_agent import attributes  # noqa: PLC0415  # the parsers' tables take 0.2 s to load

    return attributes(user_agents)


@contextmanager
def classifier_processes() -> Iterator[Classifier]:
    """Yield a classifier that runs in PROCESSES child processes.

    The child processes are forked here: call this function before the process has threads. One of them loads the
    parsers while the calling process loads its libraries. The others load the parsers only when there is more than one
    batch. If a child process dies or cannot start, the calling process classifies instead.
    """
    context = multiprocessing.get_context("fork")  # a fork server's start takes 0.15 s of processor time more
    started = context.Semaphore(1)
    with ProcessPoolExecutor(PROCESSES, context, _prepare, (started,)) as pool:

        def classify(user_agents: Sequence[str]) -> list[Attributes]:
            starts = range(0, len(user_agents), BATCH_USER_AGENTS)
            batches = [user_agents[start : start + BATCH_USER_AGENTS] for start in starts]
            if len(batches) > 1:
                started.release()
            try:
                return [each for batch in pool.map(classify_many, batches) for each in batch]
            except BrokenProcessPool:
                return classify_many(user_agents)

        try:
            yield classify if _is_started(pool) else classify_many
        finally:
            started.release()


def _is_started(pool: ProcessPoolExecutor) -> bool:
    """Fork the child processes, let one of them load the parsers, and return whether the processes could start."""
    try:
        with forking():
            pool.submit(classify_many, [])
    except OSError:  # the system has no memory for another process
        for process in multiprocessing.active_children():
            process.kill()
        return False
    return True


def _prepare(started: Semaphore) -> None:
    """Wait until the parent process needs this process."""
    follow_parent()
    started.acquire()
