"""A clock that jumps is not trusted until it has advanced for a day, or until an operator confirms the time."""

from pathlib import Path

import pytest

from warehouse.clock import CONFIRM_S, JUMP_S, Clock, advanced, is_trusted, record

HOUR_S, DAY_S = 3600.0, 24 * 3600.0
START = Clock(1_790_000_000)


def looks(*after_s: float, clock: Clock = START) -> Clock:
    """Return the clock after observations at these times after START."""
    for each in after_s:
        clock = advanced(clock, START.trusted_s + each)
    return clock


def test_time_that_passes_is_trusted() -> None:
    assert looks(HOUR_S, 3 * DAY_S, 3 * DAY_S + JUMP_S) == Clock(START.trusted_s + 3 * DAY_S + JUMP_S)


@pytest.mark.parametrize("jump_s", [400 * DAY_S, JUMP_S + 1, -JUMP_S - 1, -400 * DAY_S])
def test_jump_in_either_direction_is_not_trusted(jump_s: float) -> None:
    assert looks(jump_s) == Clock(START.trusted_s, START.trusted_s + jump_s)


@pytest.mark.parametrize("jump_s", [400 * DAY_S, -400 * DAY_S])
def test_clock_that_advances_for_a_day_after_a_jump_is_trusted(jump_s: float) -> None:
    hourly = [jump_s + hour * HOUR_S for hour in range(25)]
    assert not looks(*hourly[:-1]).is_trusted
    assert looks(*hourly) == Clock(START.trusted_s + jump_s + CONFIRM_S)


def test_time_while_the_service_was_off_counts_as_one_step() -> None:
    nightly = [400 * DAY_S + day * DAY_S for day in range(12)]  # one look a day: two hours each
    assert not looks(*nightly).is_trusted
    assert looks(*nightly, 412 * DAY_S).is_trusted


def test_clock_that_is_corrected_is_trusted_at_once() -> None:
    assert looks(400 * DAY_S, 400 * DAY_S + HOUR_S, 2 * HOUR_S) == Clock(START.trusted_s + 2 * HOUR_S)


def test_second_jump_begins_a_new_day() -> None:
    hourly = [400 * DAY_S + hour * HOUR_S for hour in range(20)]
    assert looks(*hourly, 800 * DAY_S) == Clock(START.trusted_s, START.trusted_s + 800 * DAY_S)


def test_folder_is_trusted_only_with_a_record_near_the_time(tmp_path: Path) -> None:
    assert not is_trusted(tmp_path, START.trusted_s)
    record(tmp_path, START)
    assert is_trusted(tmp_path, START.trusted_s + JUMP_S)
    assert not is_trusted(tmp_path, START.trusted_s + JUMP_S + 1)
