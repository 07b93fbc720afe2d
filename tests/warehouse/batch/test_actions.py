"""Each step runs although an earlier one failed, unless it would fail for the same reason."""

import errno
from collections.abc import Callable, Iterator

import pytest

from warehouse.batch.actions import Action, is_of_all, is_outage, run_all
from warehouse.errors import DataIncomplete, LakeBusy, LakeUnreachable


def failing(error: Exception) -> Callable[[], object]:
    def step() -> None:
        raise error

    return step


def test_error_of_the_only_failed_step_is_raised_at_the_end_with_the_name_of_its_step() -> None:
    done: list[str] = []
    steps = [("a", lambda: done.append("a")), ("b", failing(ValueError("damaged"))), ("c", lambda: done.append("c"))]
    with pytest.raises(ValueError, match="damaged") as caught:
        run_all(steps)
    assert caught.value.__notes__ == ["in b"]
    assert done == ["a", "c"]


def test_errors_of_several_steps_are_raised_as_one_group_with_the_names_of_their_steps() -> None:
    inner = [("b", failing(ValueError("one"))), ("c", failing(KeyError("two")))]
    with pytest.raises(ExceptionGroup) as caught:
        run_all([("a", lambda: run_all(inner)), ("d", failing(OSError("three")))])
    assert [type(error) for error in caught.value.exceptions] == [ValueError, KeyError, OSError]
    assert [error.__notes__ for error in caught.value.exceptions] == [["in b", "in a"], ["in c", "in a"], ["in d"]]


def test_last_error_of_inner_steps_ends_the_outer_ones() -> None:
    inner = [("a", failing(ValueError("damaged"))), ("b", failing(LakeUnreachable("away")))]
    with pytest.raises(ExceptionGroup):
        run_all([("inner", lambda: run_all(inner)), ("c", lambda: pytest.fail("the steps have ended"))])


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


def test_error_of_the_iterator_ends_the_steps_and_hides_no_error() -> None:
    def steps() -> Iterator[Action]:
        yield "a", failing(ValueError("damaged"))
        raise KeyError("lost")

    with pytest.raises(ExceptionGroup) as caught:
        run_all(steps())
    assert [(type(error), getattr(error, "__notes__", [])) for error in caught.value.exceptions] == [
        (ValueError, ["in a"]),
        (KeyError, []),
    ]


def test_taken_lock_hides_no_error() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        run_all([("a", failing(LakeBusy("busy"))), ("b", failing(ValueError("damaged")))], is_outage)
    assert [type(error) for error in caught.value.exceptions] == [LakeBusy, ValueError]


def test_taken_lock_is_one_error() -> None:
    with pytest.raises(LakeBusy, match="first"):
        run_all([("a", failing(LakeBusy("first"))), ("b", failing(LakeBusy("second")))], is_outage)


def test_steps_without_an_error_raise_none() -> None:
    done: list[str] = []
    run_all((name, lambda name=name: done.append(name)) for name in "abc")  # type: ignore[misc]
    assert done == ["a", "b", "c"]
