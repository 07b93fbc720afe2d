"""User agents told apart on two cores: the parsers hold the interpreter, so that threads would take turns."""

import gc
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

Reader = tuple[str | None, ...]
"""All that a user agent says: see `reader.columns`."""
Describe = Callable[[Sequence[str]], list[Reader]]
SHARED_MIN = 3_000
"""Fewer are told sooner by one process."""
END_WAIT_S = 5


def described(user_agents: Sequence[str]) -> list[Reader]:
    """What each user agent says, told by this process."""
    from ingest.reader import columns  # noqa: PLC0415  # the parsers' tables take 0.2 s: the other process loads them

    return [columns(agent) for agent in user_agents]


@contextmanager
def helped() -> Iterator[Describe]:
    """`described`, shared with a process that is forked here: to be called before this one loads Arrow or Polars.

    A lock that a thread holds at a fork stays held in the child, and those libraries have threads. That process loads
    the tables of the parsers while this one loads the libraries, and tells few user agents alone. If it dies, this one
    does all. Where a fork is not safe, which is everywhere but on Linux, there is none.
    """
    if sys.platform != "linux":
        yield described
        return
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, ours), daemon=True)
    process.start()
    theirs.close()
    try:
        yield lambda user_agents: _shared(ours, user_agents)
    finally:
        ours.close()
        process.kill()  # it has nothing to end in order
        process.join(END_WAIT_S)


def _shared(helper: Connection, user_agents: Sequence[str]) -> list[Reader]:
    here = len(user_agents) // 2 if len(user_agents) >= SHARED_MIN else 0
    try:
        helper.send(user_agents[here:])
        ours = described(user_agents[:here]) if here else []
        theirs: list[Reader] = helper.recv()
    except (EOFError, OSError):  # it was killed, as by a system that is out of memory
        return described(user_agents)
    return [*ours, *theirs]


def _serve(asked: Connection, parents: Connection) -> None:
    """Answer until the other end is closed, also by its process's death. Ctrl-C, sent to both, is for the other."""
    parents.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    described([""])
    gc.freeze()
    while True:
        try:
            user_agents = asked.recv()
        except EOFError:
            return
        asked.send(described(user_agents))
