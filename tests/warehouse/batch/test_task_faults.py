"""The fault of a step is reported until a run has reached the step again."""

from collections.abc import Callable

import pytest

from warehouse.batch.actions import run_all
from warehouse.batch.task_faults import TaskFaults
from warehouse.errors import DataIncomplete, LakeBusy, LakeUnreachable, WarehouseError

TASK = "the compaction"


def failing(**errors: Exception) -> Callable[[], bool]:
    """Return a task with steps that raise these errors."""

    def task() -> bool:
        run_all((name, step_of(error)) for name, error in errors.items())
        return True

    return task


def step_of(error: Exception) -> Callable[[], object]:
    def step() -> None:
        raise error

    return step


def texts(faults: TaskFaults) -> list[str]:
    return sorted((faults.text(is_data_incomplete=False) or "").splitlines())


def test_run_replaces_the_faults_of_its_task() -> None:
    faults = TaskFaults()
    faults.attempt("the vacuum", failing(a=WarehouseError("one")))
    faults.attempt(TASK, failing(a=WarehouseError("one"), b=WarehouseError("two")))
    assert texts(faults) == [
        "WarehouseError: one; in a; in the compaction",
        "WarehouseError: one; in a; in the vacuum",
        "WarehouseError: two; in b; in the compaction",
    ]
    faults.attempt(TASK, failing(b=KeyError("three")))
    assert texts(faults) == [
        "KeyError, see the log; in b; in the compaction",
        "WarehouseError: one; in a; in the vacuum",
    ]
    faults.attempt(TASK, failing())
    assert texts(faults) == ["WarehouseError: one; in a; in the vacuum"]
    assert "the vacuum" in faults
    assert TASK not in faults


def test_faults_stay_while_nothing_is_done() -> None:
    faults = TaskFaults()
    faults.attempt(TASK, failing(a=WarehouseError("one")))
    faults.attempt(TASK, lambda: False)
    assert texts(faults) == ["WarehouseError: one; in a; in the compaction"]


@pytest.mark.parametrize("last", [LakeBusy("busy"), LakeUnreachable("away")], ids=str)
def test_run_that_was_cut_off_leaves_the_faults_of_steps_that_it_may_not_have_reached(last: Exception) -> None:
    faults = TaskFaults()
    faults.attempt(TASK, failing(a=WarehouseError("one"), c=WarehouseError("two")))
    with pytest.raises(type(last)):
        faults.attempt(TASK, failing(a=WarehouseError("three"), b=last))
    assert texts(faults) == [
        "WarehouseError: three; in a; in the compaction",
        "WarehouseError: two; in c; in the compaction",
    ]


def test_lock_of_another_process_is_no_fault() -> None:
    faults = TaskFaults()
    with pytest.raises(LakeBusy):
        faults.attempt(TASK, failing(a=LakeBusy("busy")))
    assert TASK not in faults


def test_incomplete_data_are_distinguished_and_each_fault_is_one_line() -> None:
    faults = TaskFaults()
    faults.attempt(TASK, failing(a=WarehouseError("one\ntwo"), b=DataIncomplete("lost")))
    assert faults.text(is_data_incomplete=False) == "WarehouseError: one two; in a; in the compaction"
    assert faults.text(is_data_incomplete=True) == "DataIncomplete: lost; in b; in the compaction"


def test_caller_gets_each_error_before_it_is_a_fault() -> None:
    faults = TaskFaults()
    known: list[bool] = []
    for _ in range(2):
        faults.attempt(
            TASK, failing(a=WarehouseError("one")), lambda error: known.append(faults.has("WarehouseError: one"))
        )
    assert known == [False, True]
