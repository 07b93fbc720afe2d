"""Fake clock."""

SECOND_US = 1_000_000
HOUR_S = 3600


class Clock:
    """Clock that moves only when a test advances it. `us` is microseconds since 1970."""

    def __init__(self) -> None:
        self.us = 1_780_000_000 * SECOND_US

    def __call__(self) -> int:
        return self.us

    def advance(self, seconds: float) -> int:
        """Advance the clock and return its time."""
        self.us += int(seconds * SECOND_US)
        return self.us
