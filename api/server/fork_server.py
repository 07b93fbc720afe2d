"""The start of server processes: forks of a fork server, a process that has imported most modules.

The fork server is a part of multiprocessing: https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods
If it dies, multiprocessing reports all its processes as ended with status 255. They still run, but their pipes to the
supervisor are closed, and so they finish their requests and end, as if the supervisor had died.
"""

import logging
import multiprocessing
import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any

from warehouse.batch.parent import forking

LOG = logging.getLogger("readership.supervisor")
PRELOADED = "api.server.preloaded"
"""Module that the fork server imports."""
_SAFE_PATH = "PYTHONSAFEPATH"
"""Variable without which the fork server of Python 3.11 would import modules of the working directory first."""
_FORK_SERVER, _SPAWN = multiprocessing.get_context("forkserver"), multiprocessing.get_context("spawn")
_RELEASE = version("readership")


def start(function: Callable[..., None], number: int, arguments: tuple[Any, ...]) -> BaseProcess:
    """Start a process that calls `function(number, *arguments)`.

    The process is spawned if the fork server cannot start it, and after an upgrade: a process with modules of two
    releases could fail.

    Raises:
        OSError: no memory, process or file descriptor is free.
    """
    resource_tracker.ensure_running()  # see `forking`
    with forking():
        if _installed_release() == _RELEASE:
            try:
                _ensure_fork_server()
                return _started_by(_FORK_SERVER, function, number, arguments)
            except (OSError, EOFError) as error:  # its socket was deleted, or it has died
                LOG.warning("server process %d starts without the fork server: %r", number, error)
        return _started_by(_SPAWN, function, number, arguments)


def _started_by(
    context: ForkServerContext | SpawnContext, function: Callable[..., None], number: int, arguments: tuple[Any, ...]
) -> BaseProcess:
    process = context.Process(target=function, args=(number, *arguments), name=f"server process {number}")
    process.start()
    return process


def _installed_release() -> str | None:
    """Return the installed release of the program; None in the middle of an upgrade."""
    try:
        return version("readership")
    except PackageNotFoundError:
        return None


def _ensure_fork_server() -> None:
    """Start the fork server if none runs. It inherits the blocked signals, and so only SIGKILL ends it."""
    _FORK_SERVER.set_forkserver_preload([PRELOADED])
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        forkserver.ensure_running()
    finally:
        del os.environ[_SAFE_PATH]
        if before is not None:
            os.environ[_SAFE_PATH] = before
