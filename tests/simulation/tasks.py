"""Operations that pause at each step of the product and at each sync, and can be killed there."""

from collections.abc import Callable
from typing import Protocol

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """The process of a task was killed."""


class Connection(Protocol):
    """A connection to the hot log."""

    @property
    def in_transaction(self) -> bool: ...


class Task:
    """An operation in its own greenlet: as a process, it shares only files and databases with the others."""

    def __init__(
        self,
        name: str,
        call: Callable[[], object],
        began_s: float,
        hot: Connection | None = None,
        on_end: Callable[[bool], object] = lambda is_done: None,
    ) -> None:
        """Create a task that has not begun. `on_end` is called at its end with whether it is complete."""
        self.name, self.began_s, self.hot, self.on_end = name, began_s, hot, on_end
        self.place = "its start"
        self.is_dying = self.is_robbed = self.has_ended = False
        self.frozen = 0
        """Number of steps for which the task stays paused."""
        self.error: BaseException | None = None
        self._greenlet = greenlet(lambda: self._run(call))
        self._greenlet.task = self

    def resume(self) -> None:
        """Run the task up to its next pause."""
        self._greenlet.switch()

    def kill(self) -> None:
        self.is_dying = True
        if self._greenlet:
            self._greenlet.throw(Killed)
        self.has_ended = True

    def _run(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001  # the episode decides whether the error is a fault
            self.error = error
        self.has_ended = True


def current() -> Task | None:
    return getattr(getcurrent(), "task", None)


def pause(place: str) -> None:
    """Return to the scheduler, unless the caller is in no task. A write transaction is not interrupted.

    Raises:
        Killed: the scheduler has killed the task meanwhile.
    """
    task = current()
    if task is None:
        return
    require_alive()
    if task.hot is not None and task.hot.in_transaction:
        return
    task.place = place
    task._greenlet.parent.switch()


def require_alive() -> None:
    """Raise Killed in a task that was killed, so that its `finally` blocks change no file."""
    task = current()
    if task is not None and task.is_dying:
        raise Killed
