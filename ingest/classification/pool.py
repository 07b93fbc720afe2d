"""Classification of user agents in child processes. Threads would not run in parallel: the parsers are Python code."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver
from threading import Thread

Attributes = tuple[str | None, ...]
"""The columns of `warehouse.schema.CLASSIFICATION` without the user agent, in the order of the schema."""
Classifier = Callable[[Sequence[str]], list[Attributes]]
"""A function that returns the attributes of each user agent, in the same order."""
PROCESSES = 2
BATCH_USER_AGENTS = 2_000
"""Number of user agents of a task, which takes some 50 ms."""


def classify_many(user_agents: Sequence[str]) -> list[Attributes]:
    """Return the attributes of each user agent, in this process."""
    from ingest.classification.user_agent import attributes  # noqa: PLC0415  # the parsers' tables take 0.2 s to load

    return attributes(user_agents)


@contextmanager
def classifier_processes() -> Iterator[Classifier]:
    """Yield a classifier that runs in PROCESSES child processes.

    A fork server starts here, and forks the child processes when there is something to classify. The server has no
    threads, and loads the parsers once, while the calling process loads its libraries. If a child process dies or
    cannot start, the calling process classifies instead.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "ingest.classification.user_agent"])
    forkserver.ensure_running()
    with ProcessPoolExecutor(PROCESSES, context, _prepare) as pool:

        def classify(user_agents: Sequence[str]) -> list[Attributes]:
            starts = range(0, len(user_agents), BATCH_USER_AGENTS)
            batches = [user_agents[start : start + BATCH_USER_AGENTS] for start in starts]
            try:
                return [each for batch in pool.map(classify_many, batches) for each in batch]
            except (BrokenProcessPool, EOFError, OSError):  # as when the system has no memory for another process
                return classify_many(user_agents)

        yield classify


def _prepare() -> None:
    """Leave Ctrl-C to the parent process, and end when the parent process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
