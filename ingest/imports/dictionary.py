"""Dictionary-encoded columns of texts: each distinct text is processed once."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXTS = pa.dictionary(pa.int32(), pa.string())


def map_values(column: pa.DictionaryArray, function: Callable[[Any], object], type: pa.DataType) -> pa.Array:
    """Return the function's result for the value of each row; null for a row that is null."""
    return pa.array(map(function, column.dictionary.to_pylist()), type).take(column.indices)


def replace(column: pa.DictionaryArray, texts: Sequence[str], by: str | None) -> pa.DictionaryArray:
    """Return the column with the text `by`, or null, in place of each of `texts`, which are ASCII."""
    shortest = pc.min(pc.binary_length(column.dictionary)).as_py()
    if shortest is None or shortest > max(map(len, texts)):
        return column
    is_one = reduce(pc.or_, [pc.equal(column.dictionary, text) for text in texts])
    if not pc.any(is_one).as_py():
        return column
    replaced = pc.if_else(is_one, pa.scalar(by, pa.string()), column.dictionary).dictionary_encode()
    return pa.DictionaryArray.from_arrays(replaced.indices.take(column.indices), replaced.dictionary)


def compact(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return one array whose dictionary has only the texts that occur in its rows."""
    whole = one_array(column)
    used = whole.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(used.indices, whole.dictionary.take(used.dictionary))


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without a copy if it has one chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def take(texts: pa.Array | pa.ChunkedArray | Sequence[str | None], indices: pa.Array) -> pa.DictionaryArray:
    """Return `texts[index]` for each index, with the distinct texts as the dictionary."""
    column = one_array(texts) if isinstance(texts, pa.ChunkedArray) else pa.array(texts, pa.string())
    if column.null_count == len(column):  # as most parameters of requests are
        return pa.nulls(len(indices), TEXTS)
    distinct = column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(distinct.indices.take(indices), distinct.dictionary)


def repeated(text: str, rows: int) -> pa.DictionaryArray:
    """Return a column with one text in all rows."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([text], pa.string()))
