"""A column says the same before and after, with each text in its dictionary once."""

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.imports.dictionary import TEXTS, compact, map_values, one_array, replace

texts = st.lists(st.sampled_from(["", "-", "a", "b", "ü", None]), max_size=8)
columns = st.lists(st.tuples(texts, st.integers(0, 3)), max_size=4)


def column(of: list[str | None], skipped: int = 0) -> pa.DictionaryArray:
    """Without the first few rows, whose texts stay in the dictionary."""
    return pa.array(["first", "second", "third"][:skipped] + of, pa.string()).dictionary_encode()[skipped:]


def is_each_once(found: pa.DictionaryArray) -> bool:
    return set(Counter(found.dictionary.to_pylist()).values()) <= {1}


@settings(deadline=None, derandomize=True)
@given(columns)
def test_compact_column_has_the_texts_of_its_rows_alone(pieces: list[tuple[list[str | None], int]]) -> None:
    chunks = [column(of, skipped) for of, skipped in pieces]
    rows = [text for of, _ in pieces for text in of]
    found = compact(pa.chunked_array(chunks, TEXTS))
    assert found.to_pylist() == rows
    assert is_each_once(found)
    assert set(found.dictionary.to_pylist()) == {text for text in rows if text is not None}
    assert one_array(pa.chunked_array(chunks, TEXTS)).to_pylist() == rows


@settings(deadline=None, derandomize=True)
@given(texts, st.lists(st.sampled_from(["", "-", "a", "x"]), min_size=1, max_size=2), st.sampled_from(["", "a", None]))
def test_replaced_texts_are_another_or_none(rows: list[str | None], texts: list[str], by: str | None) -> None:
    found = replace(column(rows), texts, by)
    assert found.to_pylist() == [by if row in texts else row for row in rows]
    assert is_each_once(found)


def test_each_text_is_asked_about_once_and_none_about_nothing() -> None:
    asked = list[str]()

    def say(text: str) -> int:
        asked.append(text)
        return len(text)

    assert map_values(column(["abc", None, "", "abc"]), say, pa.int8()).to_pylist() == [3, None, 0, 3]
    assert asked == ["abc", ""]
