"""Faults of tasks that run again and again: each fault is reported until its step has succeeded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warehouse.batch import actions
from warehouse.database_errors import outage_of, reason_of
from warehouse.errors import DataIncomplete, LakeBusy, WarehouseError
from warehouse.hotlog import disk_space

Faults = Mapping[tuple[str, ...], "Fault"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Error of a step. The notes name the step, and those that it is a part of: see `actions.run_all`.

    `shown` is the part of the text that `/readyz` shows to anyone; the log has the whole text. `is_data_incomplete`
    means that reports are refused; otherwise the service works.
    """

    text: str
    shown: str
    notes: tuple[str, ...]
    is_data_incomplete: bool

    def __str__(self) -> str:
        return "; ".join((self.shown, *self.notes))


def fault_of(error: Exception) -> Fault:
    """Return the fault of an error; for an outage, the text names the store and there are no notes."""
    if outage := outage_of(error):
        return Fault(outage, outage, (), is_data_incomplete=False)
    kind = "disk full" if disk_space.is_full(error) else type(error).__name__
    text, notes = f"{kind}: {reason_of(error)}", tuple(getattr(error, "__notes__", ()))
    shown = text if isinstance(error, WarehouseError) else f"{kind}, see the log"
    return Fault(text, shown, notes, isinstance(error, DataIncomplete))


class TaskFaults:
    """Faults of the steps of each task. One thread runs the tasks, and others may read the faults meanwhile."""

    def __init__(self) -> None:
        self._by_task: Mapping[str, Faults] = {}

    def __contains__(self, task: str) -> bool:
        return task in self._by_task

    def text(self, *, is_data_incomplete: bool) -> str | None:
        """Return the faults with or without incomplete data, one a line; None without any."""
        faults = (fault for faults in self._by_task.values() for fault in faults.values())
        return "\n".join(str(each) for each in faults if each.is_data_incomplete == is_data_incomplete) or None

    def has(self, text: str) -> bool:
        """Return whether a fault has this text, in whichever step."""
        return any(text == fault.text for faults in self._by_task.values() for fault in faults.values())

    def attempt(
        self, name: str, task: Callable[[], bool], on_error: Callable[[Exception], None] = lambda error: None
    ) -> None:
        """Call a task, which returns whether all of its work is done, and record its errors until it is.

        A run replaces the faults of the task. After an error that may have ended the run early, the faults of steps
        that it may not have reached stay. `on_error` is called for each error before the faults change.

        Raises:
            LakeBusy: another process or node has a lock.
            Exception: a store does not answer. This error is not recorded: it is over when the store answers.
        """
        try:
            if task():
                self._replace(name, {})
        except Exception as error:  # noqa: BLE001  # a later run of the task finds out whether the fault is over
            errors = actions.errors_of(error)
            raised = [each for each in errors if isinstance(each, LakeBusy) or actions.is_outage(each)]
            recorded = [each for each in errors if each not in raised]
            for each in recorded:
                each.add_note(f"in {name}")
                on_error(each)
            self._record(name, recorded, is_complete=not any(map(actions.is_of_all, errors)))
            if raised:
                raise min(raised, key=lambda each: isinstance(each, LakeBusy)) from None

    def _record(self, name: str, errors: Sequence[Exception], *, is_complete: bool) -> None:
        known = {} if is_complete else self._by_task.get(name, {})
        self._replace(name, {**known, **{fault.notes: fault for fault in map(fault_of, errors)}})

    def _replace(self, name: str, faults: Faults) -> None:
        others = {each: known for each, known in self._by_task.items() if each != name}
        self._by_task = {**others, name: faults} if faults else others
