"""Functions for workers, which import them from this module."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from warehouse.batch.driver import Item, Result
from warehouse.batch.processes import ChildProcesses


def square(number: int) -> int:
    return number * number


def process_id(number: int) -> int:
    return os.getpid()


def divide(number: int) -> float:
    return 1 / number


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class UnpicklableError(Exception):
    """An error that pickle cannot restore: its constructor takes other parameters than its text."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def fail(number: int) -> None:
    raise UnpicklableError("one", "two")


@dataclass(frozen=True)
class DieOnce:
    """A function whose process dies after its first call, before the result is sent. `marker` is a new file."""

    function: Callable[..., object]
    marker: Path

    def __call__(self, item: object) -> object:
        result = self.function(item)
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return result


class DyingProcesses(ChildProcesses):
    """An executor of child processes, the first of which dies once."""

    def __init__(self, size: int, marker: Path) -> None:
        super().__init__(size)
        self.marker = marker

    def submit(self, function: Callable[[Item], Result], item: Item) -> "Future[Result]":
        return super().submit(DieOnce(function, self.marker), item)  # type: ignore[arg-type]
