"""A size that grows is a fault of the soak, and one that varies is none."""

from tests.night.soak import grown


def test_growth_from_the_second_quarter_to_the_last_is_a_fault() -> None:
    level = [{"MiB": 900.0}, *({"MiB": 300.0 + each % 3} for each in range(19))]
    growing = [{"MiB": 300.0 + 10 * each} for each in range(20)]
    assert grown(level) == []
    assert grown(growing) == ["MiB grew from 370 to 470"]
    assert grown(growing[:3]) == []
