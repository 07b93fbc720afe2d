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


def is_of_all(error: Exception) -> bool:
    """Return whether each later step would fail for the same reason: a store, the lock of the lake, or a full disk."""
    return isinstance(error, LakeBusy | DataIncomplete) or is_outage(error) or disk_space.is_full(error)


def run_all(steps: Iterable[Step], is_last: Callable[[Exception], bool] = is_of_all) -> None:
    """Call each step, also after an error of an earlier one, and raise the first error at the end.

    An error for which `is_last` is true ends the steps. The error that is raised has a note with the name of its step.
    LakeBusy is raised only if no other error was.
    """
    errors: list[Exception] = []
    for name, step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001  # it is raised at the end
            error.add_note(f"in {name}")
            errors.append(error)
            if is_last(error):
                break
    if errors:
        raise min(errors, key=lambda each: isinstance(each, LakeBusy))  # the first one, if possible not LakeBusy
