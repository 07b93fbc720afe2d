"""Query parameters of the address of a page: each column that is declared has the first value of its parameter."""

import pytest

from ingest.hits.parameters import parameters
from warehouse.columns.hits import PARAMETERS


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?{name}=news&{name}=other", "news"),
        ("?b=c&{name}=caf%C3%A9+1", "caf\xe9 1"),
        ("?{name}=a%0Ab", "ab"),
        ("?{name}=", None),
        ("?{name}=%00", None),
        ("?x{name}=news", None),
        ("#?{name}=news", None),
        ("", None),
    ],
)
def test_parameter_is_the_first_one_of_its_name_in_the_query(name: str, query: str, expected: str | None) -> None:
    read = parameters("https://example.com/a" + query.format(name=name))
    assert read == ({} if expected is None else {name: expected})


def test_all_parameters_of_a_query_are_read() -> None:
    assert parameters("/a?" + "&".join(f"{name}=of-{name}" for name in PARAMETERS) + "&other=1") == {
        name: f"of-{name}" for name in PARAMETERS
    }
