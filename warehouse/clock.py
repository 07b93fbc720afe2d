"""Check that the system's clock can be trusted, before data is removed by its age.

A clock that jumps ahead by a year makes every hit look older than the retention. The newest trusted time is therefore
stored in the lake's folder. A time far from it can be correct, for example after the service was off for months. Such a
time is trusted once the clock has advanced by a day since the jump, or once an operator confirms it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from warehouse import disk

JUMP_S = 7 * 24 * 3600
"""Largest difference from the newest trusted time that is not a jump, in seconds, in either direction."""
CONFIRM_S = 24 * 3600
"""Running time since a jump that makes the clock trusted again, in seconds."""
STEP_S = 2 * 3600
"""Longest time between two observations that counts as running time, in seconds. Maintenance observes every hour."""
FILE = ".clock"
"""File in the lake's local folder with the `Clock` as JSON: it is about the clock of one machine."""


class Clock(msgspec.Struct, frozen=True):
    """Newest trusted time, in seconds since 1970.

    After a jump, `looked_s` is the time of the last observation, and `passed_s` is the running time since the jump in
    seconds.
    """

    trusted_s: float
    looked_s: float | None = None
    passed_s: float = 0.0

    @property
    def is_trusted(self) -> bool:
        return self.looked_s is None


def advanced(clock: Clock, now_s: float) -> Clock:
    """Return the clock after an observation of the time."""
    if abs(now_s - clock.trusted_s) <= JUMP_S:
        return Clock(now_s)
    if clock.looked_s is None or abs(now_s - clock.looked_s) > JUMP_S:
        return Clock(clock.trusted_s, now_s)
    passed_s = clock.passed_s + min(max(now_s - clock.looked_s, 0.0), STEP_S)
    return Clock(now_s) if passed_s >= CONFIRM_S else Clock(clock.trusted_s, now_s, passed_s)


def observe(folder: Path, now_s: float, first_trusted_s: Callable[[], float]) -> Clock:
    """Record an observation of the time in the lake's local folder, and return the clock after it.

    `first_trusted_s` returns the newest trusted time of a folder without a record.
    """
    clock = advanced(_read(folder) or Clock(first_trusted_s()), now_s)
    record(folder, clock)
    return clock


def is_trusted(folder: Path, now_s: float) -> bool:
    """Return whether data may be removed by its age now; False for a folder without a record. Records nothing."""
    clock = _read(folder)
    return clock is not None and advanced(clock, now_s).is_trusted


def record(folder: Path, clock: Clock) -> None:
    """Write the clock's record, and sync it."""
    disk.write(folder / FILE, msgspec.json.encode(clock))


def warning(folder: Path) -> str | None:
    """Return the reason why no data is removed by its age at present; None if the clock is trusted."""
    clock = _read(folder)
    if clock is None or clock.looked_s is None:
        return None
    hours = (CONFIRM_S - clock.passed_s) / 3600
    return (
        f"the clock jumped: it shows {_iso(clock.looked_s)}, and the newest trusted time is {_iso(clock.trusted_s)}. "
        f"No data is removed by its age until the clock has advanced for {hours:.0f} more hours, or until "
        "readership retention --yes confirms the time"
    )


def _read(folder: Path) -> Clock | None:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Clock)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes")
