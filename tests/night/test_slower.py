"""A figure that became worse by a fifth is named, in the direction of its unit."""

from tests.night.slower import compared

BEFORE = {("import_log", "time"): (1.0, "s"), ("single", "rate"): (1000.0, "requests/s"), ("gone", "x"): (1.0, "s")}


def test_losses_of_a_fifth_are_named_and_smaller_ones_and_gains_are_not() -> None:
    worse = {("import_log", "time"): (1.2, "s"), ("single", "rate"): (830.0, "requests/s"), ("new", "x"): (9.0, "s")}
    assert compared(BEFORE, worse) == [
        "worse: import_log, time: 1 -> 1.2 s",
        "worse: single, rate: 1000 -> 830 requests/s",
    ]
    assert compared(BEFORE, {("import_log", "time"): (1.19, "s"), ("single", "rate"): (850.0, "requests/s")}) == []
    assert compared(BEFORE, {("import_log", "time"): (0.1, "s"), ("single", "rate"): (9000.0, "requests/s")}) == []
