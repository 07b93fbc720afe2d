"""The Accept header of a request for Markdown is recognised by its media ranges with a positive weight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.classification.accept import MATCHED_CHARACTERS_MAX, find

CHROME = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "text"),
    [
        ("text/markdown, text/html, */*", "text/markdown"),
        ("text/html;q=0.9, text/markdown;q=1.0", "text/markdown;q=1.0"),
        ("TEXT/Markdown ; variant=GFM ; Q=0.001", "TEXT/Markdown ; variant=GFM ; Q=0.001"),
        ("text/markdown;q=0, text/markdown;q=0.5", "text/markdown;q=0.5"),
    ],
)
def test_header_that_asks_for_markdown_matches(accept: str, text: str) -> None:
    match = find(accept)
    assert match is not None
    assert (match[0], match[1].kind) == (text, "accept-markdown")


@pytest.mark.parametrize(
    "accept",
    [
        "", "*/*", "text/*", CHROME, "text/markdown;q=0", "text/markdown; q=0.000", "text/markdown; Q=0",
        "text/markdown;q=-1", "text/markdown;q=2", "text/markdown;q=nan", "text/markdown;q=", "text/markdowns",
        "x-text/markdown", "text/html;a=text/markdown", "," * MATCHED_CHARACTERS_MAX + "text/markdown",
    ],
)  # fmt: skip
def test_header_that_does_not_ask_for_markdown_matches_nothing(accept: str) -> None:
    assert find(accept) is None


@given(st.text(st.characters(exclude_characters=",", codec="utf-8"), max_size=200))
def test_range_for_markdown_is_found_after_any_other_range(other: str) -> None:
    match = find(f"{other},text/markdown")
    assert match is not None
