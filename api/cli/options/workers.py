"""Options with which an operator chooses where the workers of a command run, and how many there are."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import click

from api.settings import Settings
from warehouse.batch.driver import Executor
from warehouse.batch.processes import processes

LOCAL, RAY = "local", "ray"
AUTO = "auto"
"""Address of the Ray cluster that this machine is part of."""
PROCESSES_MAX = 64

Command = TypeVar("Command", bound=Callable[..., Any])

on_option = click.option(
    "--on",
    "place",
    type=click.Choice([LOCAL, RAY]),
    help="Run the workers on this machine, or in the Ray cluster at $READERSHIP_RAY, by default the one that this"
    " machine is part of. [default: ray if $READERSHIP_RAY is set, else local]",
)


def processes_option(help: str) -> Callable[[Command], Command]:
    """Return the option `--processes`, whose value is the parameter `count`."""
    return click.option("--processes", "count", type=click.IntRange(1, PROCESSES_MAX), help=help)


def is_chosen(settings: Settings, place: str | None, count: int | None) -> bool:
    """Return whether an option or a setting chooses workers outside of this process."""
    return bool(place == RAY or count or (settings.ray and place != LOCAL))


def executor(settings: Settings, place: str | None, count: int | None) -> AbstractContextManager[Executor]:
    """Return the executor of up to `count` calls at a time: by default one in this process, or one for each core of the
    cluster.

    Raises:
        ClusterUnusable: Ray is to be used and is not installed.
    """
    if (place or (RAY if settings.ray else LOCAL)) == LOCAL:
        return processes(count or 1)
    from warehouse.batch import ray_workers  # noqa: PLC0415  # only with Ray

    ray_workers.require_installed()
    return ray_workers.ray_tasks(settings.ray or AUTO, count, settings.lake)
