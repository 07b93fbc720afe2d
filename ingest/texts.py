"""Columns of texts as numbers: each distinct text is looked at once, over many columns."""

from collections.abc import Callable, Sequence
from threading import Lock

import polars as pl
import pyarrow as pa


class Texts:
    """Each distinct text of the columns that come by its number, from 0, and a row of what is said of it.

    Safe for several threads.
    """

    def __init__(self, say: Callable[[pl.Series], pl.DataFrame], first: Sequence[str] = ()) -> None:
        """`say` is asked once of each text; `first` are those of the first numbers."""
        self.dtype = pl.Categorical(pl.Categories.random())
        """Of a column of these texts."""
        self.bytes = 0
        self.is_whole = True
        """False once `say` has raised: what is said would be of other texts from there on."""
        self._say = say
        self._lock = Lock()
        self.said = say(pl.Series(first, dtype=pl.String))
        """By number."""
        self._held = pl.Series(first, dtype=self.dtype)  # Polars forgets the numbers with the last column of them

    @property
    def count(self) -> int:
        return self.said.height

    def numbers(self, column: pl.Series) -> pl.Series:
        """The number of each text of a column; what is `said` holds them all after this."""
        with self._lock:
            numbers = column.cast(self.dtype).to_physical()
            assert self.is_whole
            highest = numbers.max()
            if highest is not None:
                self._learn(self.said.height, highest)  # type: ignore[arg-type]  # they are numbers
            return numbers

    def said_of(self, column: pl.Series) -> pl.DataFrame:
        """What is said of each text of a column, null of none."""
        numbers = self.numbers(column)
        return self.said.select(pl.all().gather(numbers))

    def _learn(self, first: int, last: int) -> None:
        """Ask of the texts with these numbers."""
        if last < first:
            return
        texts = pl.arange(first, last + 1, dtype=pl.UInt32, eager=True).cat.to(self.dtype).cast(pl.String)
        self.bytes += int(texts.str.len_bytes().sum())
        try:
            self.said = pl.concat([self.said, self._say(texts)]).rechunk()
        except BaseException:
            self.is_whole = False
            raise


def distinct(texts: pl.Series) -> tuple[pa.Array, pl.Series]:
    """For each text, strings or a categorical, its place among the distinct ones; and those, a categorical."""
    own = texts if isinstance(texts.dtype, pl.Categorical) else texts.cast(pl.Categorical(pl.Categories.random()))
    numbers = own.to_physical().rechunk().to_arrow().dictionary_encode()
    return numbers.indices, pl.Series(numbers.dictionary, dtype=pl.UInt32).cat.to(own.dtype)


def encoded(texts: pl.Series) -> pa.DictionaryArray:
    """The texts, strings or a categorical, with each distinct one in the dictionary once."""
    return dictionary(*distinct(texts))


def dictionary(places: pa.Array, texts: pl.Series) -> pa.DictionaryArray:
    """What `distinct` says, as one."""
    return pa.DictionaryArray.from_arrays(places, texts.cast(pl.String).to_arrow().cast(pa.string()))
