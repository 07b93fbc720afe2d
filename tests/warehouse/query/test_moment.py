"""The text of a moment leads back to the moment, and nothing else is a moment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.errors import InvalidMoment
from warehouse.query.moment import Moment

NUMBERS = st.integers(0, 10**18 - 1)


def test_text_has_the_time_the_version_and_the_last_batch() -> None:
    moment = Moment(version=41, last_id=1077, staged=0, taken_us=1_788_264_000_123_456)
    assert str(moment) == "2026-09-01T12:00:00.123456Z_41_1077"
    assert Moment.parse("2026-09-01T12:00:00.123456Z_41_1077_3") == Moment(41, 1077, 0, 1_788_264_000_123_456, 3)


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(0, 4 * 10**15), NUMBERS)
def test_text_leads_back_to_the_moment(version: int, last_id: int, staged: int, taken_us: int, generation: int) -> None:
    moment = Moment(version, last_id, staged, taken_us, generation)
    assert Moment.parse(str(moment)) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-09-01",
        "2026-09-01T12:00:00.123456Z",
        "2026-09-01T12:00:00.123456Z_41",
        "2026-09-01T12:00:00.123456Z_41_1077_0",
        "2026-09-01T12:00:00.123456Z_041_1077",
        "2026-09-01T12:00:00.123456Z_-1_1077",
        "2026-09-01T12:00:00.123456Z_41_1077_3_3",
        "2026-09-01T12:00:00.123456Z_41_1077\n",
        " 2026-09-01T12:00:00.123456Z_41_1077",
        "2026-09-01T12:00:00.123456Z_41_\u0661\u0660",
        "2026-09-01T12:00:00.123456Z_41_" + "9" * 19,
        "2026-02-31T12:00:00.123456Z_41_1077",
        "2026-09-01T12:00:60.123456Z_41_1077",
        "2026-09-01T12:00:00Z_41_1077",
        "2026-09-01T12:00:00.123456+00:00_41_1077",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidMoment):
        Moment.parse(text)
