"""A number and its noun agree."""

import pytest

from warehouse.plural import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 hits"), (1, "1 hit"), (2, "2 hits"), (-1, "-1 hits"), (12_345, "12,345 hits")]
)
def test_only_one_is_singular(number: int, text: str) -> None:
    assert counted(number, "hit") == text


def test_a_plural_may_be_irregular() -> None:
    assert [counted(number, "day of one query", "days of one query") for number in (1, 2)] == [
        "1 day of one query",
        "2 days of one query",
    ]
