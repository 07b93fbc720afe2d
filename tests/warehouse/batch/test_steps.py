"""Each step runs although an earlier one failed, unless it would fail for the same reason."""

import errno
from collections.abc import Callable

import pytest

from warehouse.batch.steps import is_of_all, is_outage, run_all
from warehouse.errors import DataIncomplete, LakeBusy, LakeUnreachable


def failing(error: Exception) -> Callable[[], object]:
    def step() -> None:
        raise error

    return step


def test_first_error_is_raised_at_the_end_with_the_name_of_its_step() -> None:
    done: list[str] = []
    steps = [
        ("a", lambda: done.append("a")),
        ("b", failing(ValueError("first"))),
        ("c", lambda: done.append("c")),
        ("d", failing(KeyError("second"))),
    ]
    with pytest.raises(ValueError, match="first") as caught:
        run_all(steps)
    assert caught.value.__notes__ == ["in b"]
    assert done == ["a", "c"]


@pytest.mark.parametrize(
    "error", [LakeBusy("busy"), DataIncomplete("lost"), LakeUnreachable("away"), OSError(errno.ENOSPC, "full")]
)
def test_error_that_each_later_step_would_have_ends_the_steps(error: Exception) -> None:
    assert is_of_all(error)
    with pytest.raises(type(error)):
        run_all([("a", failing(error)), ("b", lambda: pytest.fail("the steps have ended"))])


def test_caller_decides_which_errors_end_the_steps() -> None:
    done: list[str] = []
    full = OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="full"):
        run_all([("a", failing(full)), ("b", lambda: done.append("b"))], is_outage)
    assert done == ["b"]


def test_error_of_a_later_step_is_raised_instead_of_lake_busy() -> None:
    with pytest.raises(ValueError, match="damaged"):
        run_all([("a", failing(LakeBusy("busy"))), ("b", failing(ValueError("damaged")))], is_outage)


def test_steps_without_an_error_raise_none() -> None:
    done: list[str] = []
    run_all((name, lambda name=name: done.append(name)) for name in "abc")  # type: ignore[misc]
    assert done == ["a", "b", "c"]
