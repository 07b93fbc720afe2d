"""Run several actions, so that one that fails does not prevent the others."""

from collections.abc import Callable, Iterable

from warehouse.database_errors import outage_of
from warehouse.errors import DataIncomplete, LakeBusy
from warehouse.hotlog import disk_space

Action = tuple[str, Callable[[], object]]
"""Name of an action, and the function that performs it."""


def is_outage(error: Exception) -> bool:
    """Return whether a store does not answer, so that each later action would wait for it, too."""
    return outage_of(error) is not None


def is_of_lake(error: Exception) -> bool:
    """Return whether each later action would fail for the same reason, also one that frees disk space."""
    return isinstance(error, LakeBusy | DataIncomplete) or is_outage(error)


def is_of_all(error: Exception) -> bool:
    """Return whether each later action would fail for the same reason: a store, the lake's lock, or a full disk."""
    return is_of_lake(error) or disk_space.is_full(error)


def errors_of(error: Exception) -> tuple[Exception, ...]:
    """Return the errors of a group, which `run_all` raises, or the error itself if it is no group."""
    return tuple(error.exceptions) if isinstance(error, ExceptionGroup) else (error,)


def run_all(actions: Iterable[Action], is_last: Callable[[Exception], bool] = is_of_all) -> None:
    """Call each action, also after an error of an earlier one, and raise the errors at the end.

    An error for which `is_last` is true ends the actions, and so does one of the iterator. An action may call this
    function for its own actions.

    Raises:
        Exception: the error of the only action that failed, or the first error if each of them is LakeBusy. The error
            of an action has a note with its name; an error of the iterator has none.
        ExceptionGroup: several actions failed. The group contains no other group.
    """
    errors: list[Exception] = []
    todo = iter(actions)
    while True:
        action: Action | None = None
        try:
            if (action := next(todo, None)) is None:
                break
            action[1]()
        except Exception as error:  # noqa: BLE001  # it is raised at the end
            failed = errors_of(error)
            errors += failed
            if action is None:
                break
            for each in failed:
                each.add_note(f"in {action[0]}")
            if any(map(is_last, failed)):
                break
    if len(errors) > 1 and not all(isinstance(each, LakeBusy) for each in errors):
        raise ExceptionGroup("several actions failed", errors)
    if errors:
        raise errors[0]
