"""A text has one number in every column, and is asked about once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from ingest.texts import Texts, encoded


class Asked:
    """Says of each text how long it is, and notes what it was asked."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()

    def __call__(self, texts: pl.Series) -> pl.DataFrame:
        self.texts.update(texts.to_list())
        return pl.DataFrame({"characters": texts.str.len_chars()})


def column(*texts: str | None) -> pl.Series:
    return pl.Series(texts, dtype=pl.String)


def test_a_text_has_one_number_in_every_column_and_is_asked_about_once() -> None:
    asked = Asked()
    texts = Texts(asked, ["", "-"])
    assert texts.numbers(column("abc", "-", "abc", "de")).to_list() == [2, 1, 2, 3]
    assert texts.numbers(column("de", "", "f", "abc")).to_list() == [3, 0, 4, 2]
    assert texts.said["characters"].to_list() == [0, 1, 3, 2, 1]
    assert asked.texts == dict.fromkeys(["", "-", "abc", "de", "f"], 1)
    assert (texts.count, texts.bytes) == (5, 6)


def test_what_is_missing_has_no_number_and_nothing_is_said_of_it() -> None:
    asked = Asked()
    texts = Texts(asked)
    assert texts.numbers(column()).to_list() == []
    assert texts.numbers(column(None)).to_list() == [None]
    assert texts.said_of(column("ab", None))["characters"].to_list() == [2, None]
    assert asked.texts == {"ab": 1}


def test_numbers_are_the_same_once_no_column_has_them_any_more() -> None:
    texts = Texts(Asked())
    for _ in range(3):
        assert texts.numbers(column("b")).to_list() == [0]
    assert texts.numbers(column("c")).to_list() == [1]
    assert pl.Series([1, 0], dtype=pl.UInt32).cat.to(texts.dtype).to_list() == ["c", "b"]


def test_threads_are_told_the_same_of_the_same_texts() -> None:
    asked = Asked()
    texts = Texts(asked)
    columns = [column(*(str((first + n) % 700) for n in range(200))) for first in range(0, 700, 7)]
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(texts.said_of, columns))
    assert [each["characters"].to_list() for each in said] == [each.str.len_chars().to_list() for each in columns]
    assert asked.texts == {str(n): 1 for n in range(700)}


def test_after_a_fault_nothing_is_said_of_wrong_texts() -> None:
    def say(texts: pl.Series) -> pl.DataFrame:
        assert "bad" not in texts
        return pl.DataFrame({"text": texts})

    texts = Texts(say)
    with pytest.raises(AssertionError):
        texts.numbers(column("a", "bad"))
    assert not texts.is_whole
    with pytest.raises(AssertionError):
        texts.said_of(column("c"))


def test_texts_are_whole_for_other_threads_while_one_asks_of_some() -> None:
    found = list[bool]()

    def say(asked: pl.Series) -> pl.DataFrame:
        found.append(len(asked) == 0 or texts.is_whole)
        return pl.DataFrame({"text": asked})

    texts = Texts(say)
    texts.numbers(column("a"))
    assert [*found, texts.is_whole] == [True, True, True]


@pytest.mark.parametrize("dtype", [pl.String(), pl.Categorical(pl.Categories.random())])
def test_a_column_is_encoded_with_each_text_once(dtype: pl.DataType) -> None:
    before = pl.Series(["other"], dtype=dtype)
    for texts in (["b", None, "a", "b", ""], [None], []):
        found = encoded(pl.Series(texts, dtype=dtype))
        assert found.to_pylist() == texts
        assert Counter(found.dictionary.to_pylist()) == dict.fromkeys(filter(lambda text: text is not None, texts), 1)
    assert before.to_list() == ["other"]
