"""Texts of a column are replaced and its dictionary is compacted; then each text is in the dictionary once."""

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingest.imports.dictionary import TEXTS, compact, map_values, one_array, replace

texts = st.lists(st.sampled_from(["", "-", "a", "b", "ü", None]), max_size=8)
columns = st.lists(st.tuples(texts, st.integers(0, 3)), max_size=4)


def column(of: list[str | None], skipped: int = 0) -> pa.DictionaryArray:
    """Return a column whose dictionary also has the texts of `skipped` rows that were removed."""
    return pa.array(["first", "second", "third"][:skipped] + of, pa.string()).dictionary_encode()[skipped:]


def is_each_once(encoded: pa.DictionaryArray) -> bool:
    return set(Counter(encoded.dictionary.to_pylist()).values()) <= {1}


@given(columns)
def test_dictionary_of_a_compact_column_has_the_texts_of_its_rows(pieces: list[tuple[list[str | None], int]]) -> None:
    chunks = [column(of, skipped) for of, skipped in pieces]
    rows = [text for of, _ in pieces for text in of]
    compacted = compact(pa.chunked_array(chunks, TEXTS))
    assert compacted.to_pylist() == rows
    assert is_each_once(compacted)
    assert set(compacted.dictionary.to_pylist()) == {text for text in rows if text is not None}
    assert one_array(pa.chunked_array(chunks, TEXTS)).to_pylist() == rows


@given(texts, st.lists(st.sampled_from(["", "-", "a", "x"]), min_size=1, max_size=2), st.sampled_from(["", "a", None]))
def test_texts_are_replaced_by_another_one_or_by_null(rows: list[str | None], texts: list[str], by: str | None) -> None:
    replaced = replace(column(rows), texts, by)
    assert replaced.to_pylist() == [by if row in texts else row for row in rows]
    assert is_each_once(replaced)


def test_function_is_called_once_for_each_distinct_text_and_never_for_null() -> None:
    calls = list[str]()

    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    assert map_values(column(["abc", None, "", "abc"]), length, pa.int8()).to_pylist() == [3, None, 0, 3]
    assert calls == ["abc", ""]
