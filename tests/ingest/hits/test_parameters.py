"""Query parameters of the address of a page: each column that is declared has the first value of its parameter."""

import pytest

from ingest.hits.parameters import parameters
from warehouse.columns.hits import PARAMETERS

NAMES = [name for name in PARAMETERS if name != "click"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?{name}=news&{name}=other", "news"), ("?b=c&{name}=caf%C3%A9+1", "caf\xe9 1"), ("?{name}=a%0Ab", "ab"),
        ("?{name}=", None), ("?{name}=%00", None), ("?x{name}=news", None), ("#?{name}=news", None), ("", None),
    ],
)  # fmt: skip
def test_parameter_is_the_first_one_of_its_name_in_the_query(name: str, query: str, expected: str | None) -> None:
    read = parameters("https://example.com/a" + query.format(name=name))
    assert read == ({} if expected is None else {name: expected})


def test_all_parameters_of_a_query_are_read() -> None:
    assert parameters("/a?" + "&".join(f"{name}=of-{name}" for name in NAMES) + "&other=1") == {
        name: f"of-{name}" for name in NAMES
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ref=news", {"utm_source": "news"}),
        ("source=news", {"utm_source": "news"}),
        ("source=b&ref=a", {"utm_source": "a"}),
        ("ref=a&utm_source=b", {"utm_source": "b"}),
        ("ref=a&utm_source=", {"utm_source": "a"}),
        ("href=a&pref=b&resource=c", {}),
        ("gclid=Cj0KCQ", {"click": "gclid"}),
        ("msclkid=1&gclid=2", {"click": "gclid"}),
        ("fbclid=IwAR", {"click": "fbclid"}),
        ("gad_source=5&gad_campaignid=1", {"click": "gad_source"}),
        ("fbclid=IwAR&gclid=2", {"click": "gclid"}),
        ("xgclid=1&gclidx=2", {}),
    ],
)
def test_source_has_other_names_and_a_click_has_no_value(query: str, expected: dict[str, str]) -> None:
    assert parameters(f"/a?{query}") == parameters(f"https://example.com/a?x=1&{query}#b") == expected
