"""Child processes run items, die, are replaced, and end with their block."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.warehouse.batch.tasks import DyingProcesses, fail, process_id, square
from tests.warehouse.site import ROOT
from warehouse.batch import driver
from warehouse.batch.processes import processes
from warehouse.errors import ItemFailed

# A child process runs this file, too, before it runs `follow_parent`. The marker lets the first one do so alone.
INTERRUPTED = """
import os, signal, sys
from pathlib import Path

if __name__ == "__mp_main__":
    try:
        Path(sys.argv[1]).touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        os.killpg(0, signal.SIGINT)
else:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it for what it starts
    from tests.warehouse.batch.tasks import square
    from warehouse.batch import driver
    from warehouse.batch.processes import processes

    try:
        with processes(2) as children:
            list(driver.run(children, square, range(100_000)))
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_dead_child_is_replaced_and_its_item_repeated(tmp_path: Path) -> None:
    marker = tmp_path / "died"
    children = DyingProcesses(1, marker)
    try:
        assert [outcome.result() for _, outcome in driver.run(children, square, [2, 3])] == [4, 9]
        assert marker.exists()
        ((_, outcome),) = driver.run(children, fail, [2])
        with pytest.raises(ItemFailed, match="one and two"):
            outcome.result()
        pid = children.submit(process_id, 0).result()
    finally:
        children.close()
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_busy_child_ends_with_its_block() -> None:
    with processes(2) as children:
        pid = children.submit(process_id, 0).result()
        call = children.submit(_wait_for_ever, 0)
    assert call.exception() is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.long
def test_second_process_starts_when_the_first_one_is_busy() -> None:
    with processes(2) as children:
        first, again = (children.submit(process_id, 0).result() for _ in range(2))
        children.submit(_wait_for_ever, 0)
        second = children.submit(process_id, 0).result()
    assert first == again != second


def test_ctrl_c_while_a_child_starts_interrupts_only_the_parent_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "marker")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_one_process_is_this_one() -> None:
    with processes(1) as executor:
        assert executor.submit(process_id, 1).result() == os.getpid()


def _wait_for_ever(number: int) -> None:
    signal.pause()
