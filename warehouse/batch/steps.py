"""Run several steps, so that one that fails does not prevent the others."""

from collections.abc import Callable, Iterable

from warehouse.database_errors import outage_of
from warehouse.errors import DataIncomplete, LakeBusy
from warehouse.hotlog import disk_space

Step = tuple[str, Callable[[], object]]
"""Name of a step, and the function that performs it."""


def is_outage(error: Exception) -> bool:
    """Return whether a store does not answer, so that each later step would wait for it, too."""
    return outage_of(error) is not None


def is_of_lake(error: Exception) -> bool:
    """Return whether each later step would fail for the same reason, also one that frees disk space."""
    return isinstance(error, LakeBusy | DataIncomplete) or is_outage(error)


def is_of_all(error: Exception) -> bool:
    """Return whether each later step would fail for the same reason: a store, the lock of the lake, or a full disk."""
    return is_of_lake(error) or disk_space.is_full(error)


def errors_of(error: Exception) -> tuple[Exception, ...]:
    """Return the errors of a group, which `run_all` raises, or the error itself if it is no group."""
    return tuple(error.exceptions) if isinstance(error, ExceptionGroup) else (error,)


def run_all(steps: Iterable[Step], is_last: Callable[[Exception], bool] = is_of_all) -> None:
    """Call each step, also after an error of an earlier one, and raise the errors at the end.

    An error for which `is_last` is true ends the steps, and so does one of the iterator. A step may call this function
    for its own steps.

    Raises:
        Exception: the error of the only step that failed, or the first error if each of them is LakeBusy. The error
            of a step has a note with its name; an error of the iterator has none.
        ExceptionGroup: several steps failed. The group contains no other group.
    """
    errors: list[Exception] = []
    todo = iter(steps)
    while True:
        step: Step | None = None
        try:
            if (step := next(todo, None)) is None:
                break
            step[1]()
        except Exception as error:  # noqa: BLE001  # it is raised at the end
            failed = errors_of(error)
            errors += failed
            if step is None:
                break
            for each in failed:
                each.add_note(f"in {step[0]}")
            if any(map(is_last, failed)):
                break
    if len(errors) > 1 and not all(isinstance(each, LakeBusy) for each in errors):
        raise ExceptionGroup("several steps failed", errors)
    if errors:
        raise errors[0]
