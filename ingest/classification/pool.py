"""User agents told apart by processes of their own: in threads the parsers would take turns at the interpreter."""

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue

Attributes = tuple[str | None, ...]
"""The columns of `warehouse.schema.CLASSIFICATION` without the user agent, in the order of the schema."""
Classifier = Callable[[Sequence[str]], list[Attributes]]
"""A function that returns the attributes of each user agent, in the same order."""
PROCESSES = 2
TOLD_AT_ONCE = 2_000
"""User agents that a process is asked for; some 50 ms."""
END_WAIT_S = 5


def classify_many(user_agents: Sequence[str]) -> list[Attributes]:
    """Return the attributes of each user agent, in this process."""
    from ingest.classification.user_agent import attributes  # noqa: PLC0415  # the parsers' tables take 0.2 s to load

    return attributes(user_agents)


@contextmanager
def helped() -> Iterator[Classifier]:
    """`classify_many`, by processes that are forked here: to be called before this one loads Arrow.

    A lock that a thread holds at a fork stays held in the child, and Arrow has threads. The first loads the tables of
    the parsers while this one loads the libraries, and is forked again when it has them. What one does not tell since
    it died, this one does. Where a fork is not safe, which is everywhere but on Linux, there are none.
    """
    if sys.platform != "linux":
        yield classify_many
        return
    context = multiprocessing.get_context("fork")
    ours, theirs = zip(*(context.Pipe() for _ in range(PROCESSES)), strict=True)
    process = context.Process(target=_serve, args=(theirs, ours), daemon=True)
    process.start()
    for end in theirs:
        end.close()
    try:
        free: SimpleQueue[Connection | None] = SimpleQueue()
        for end in ours:
            free.put(end)
        yield lambda user_agents: _shared(free, user_agents)
    finally:
        for end in ours:
            end.close()
        process.join(END_WAIT_S)  # as soon as each has told what it was asked for
        process.kill()
        process.join(END_WAIT_S)


def _shared(free: "SimpleQueue[Connection | None]", user_agents: Sequence[str]) -> list[Attributes]:
    """Told by whichever is free; None stands in the place of a process that died."""

    def ask(some: Sequence[str]) -> list[Attributes]:
        process = free.get()
        try:
            if process is not None:
                process.send(some)
                return process.recv()  # type: ignore[no-any-return]  # as `_serve` sends it
        except (EOFError, OSError):  # it was killed, as by a system that is out of memory
            process = None
        finally:
            free.put(process)
        return classify_many(some)

    parts = [user_agents[start : start + TOLD_AT_ONCE] for start in range(0, len(user_agents), TOLD_AT_ONCE)]
    with ThreadPoolExecutor(PROCESSES, "tell") as pool:
        return [each for part in pool.map(ask, parts) for each in part]


def _serve(asked: Sequence[Connection], parents: Sequence[Connection]) -> None:
    """Answer until the other end is closed, also by its process's death. Ctrl-C, sent to all, is for that one."""
    for end in parents:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    classify_many([""])
    gc.freeze()
    own, forked = _forked(asked)
    with suppress(EOFError, OSError):
        while True:
            own.send(classify_many(own.recv()))
    for process in forked:  # else nobody asks for its end where process 1 does not
        os.waitpid(process, 0)


def _forked(asked: Sequence[Connection]) -> tuple[Connection, list[int]]:
    """A process for each connection, this one of them; and the ids of those that it forked. Each closes what is
    another's, else its death is not seen. Where the system allows no more, its connection is closed."""
    own, *others = asked
    forked = list[int]()
    for other in others:
        with suppress(OSError):
            forked.append(os.fork())
            if forked[-1] == 0:
                for end in asked:
                    if end is not other:
                        end.close()
                return other, []
        other.close()
    return own, forked
