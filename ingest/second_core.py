"""User agents told apart on two cores: the parsers hold the interpreter, so that threads would take turns."""

import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

from ingest.page_views import Describe, Row, described

SHARED_MIN = 3_000
"""Fewer are told sooner by one process."""
END_WAIT_S = 5


@contextmanager
def helped() -> Iterator[Describe]:
    """`described`, shared with a process that is forked here: to be called before this one reads or opens anything.

    A lock that a thread holds at a fork stays held in the child. The libraries have threads of their own once they are
    imported, but none that the parsers know of.

    That process loads the tables of the parsers while this one begins to read, and tells few user agents alone. If it
    dies, this one does all. Where a fork is not safe, which is everywhere but on Linux, there is none.
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
        process.join(END_WAIT_S)
        process.kill()


def _shared(helper: Connection, user_agents: Sequence[str]) -> list[Row]:
    here = len(user_agents) // 2 if len(user_agents) >= SHARED_MIN else 0
    try:
        helper.send(user_agents[here:])
        ours = described(user_agents[:here]) if here else []
        theirs: list[Row] = helper.recv()
    except (EOFError, OSError):  # it was killed, as by a system that is out of memory
        return described(user_agents)
    return [*ours, *theirs]


def _serve(asked: Connection, parents: Connection) -> None:
    """Answer until the other end is closed, also by its process's death. Ctrl-C, sent to both, is for the other."""
    parents.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    described([""])
    while True:
        try:
            user_agents = asked.recv()
        except EOFError:
            return
        asked.send(described(user_agents))
