"""Round ticks of an axis of counts."""

STEPS_MAX = 4
"""Maximum number of steps between the lowest and the highest tick."""


def ticks(maximum: int) -> tuple[int, ...]:
    """Return ticks from 0 up to a round number that is at least `maximum`, and at least 1."""
    step = _step(max(maximum, 1))
    count = -(-max(maximum, 1) // step)
    return tuple(step * number for number in range(count + 1))


def _step(maximum: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50 ... of which STEPS_MAX reach `maximum`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power * STEPS_MAX >= maximum:
                return factor * power
        power *= 10
