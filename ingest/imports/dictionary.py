"""Columns of texts that are dictionary-encoded: each distinct text is looked at once."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TEXTS = pa.dictionary(pa.int32(), pa.string())


def each(column: pa.DictionaryArray, say: Callable[[Any], object], kind: pa.DataType) -> pa.Array:
    """What is said of the text of each row, null of none."""
    return pa.array(map(say, column.dictionary.to_pylist()), kind).take(column.indices)


def replaced(column: pa.DictionaryArray, texts: Sequence[str], by: str | None) -> pa.DictionaryArray:
    """With another text, or none, in place of each of some, which are ASCII."""
    shortest = pc.min(pc.binary_length(column.dictionary)).as_py()
    if shortest is None or shortest > max(map(len, texts)):
        return column
    is_one = reduce(pc.or_, [pc.equal(column.dictionary, text) for text in texts])
    if not pc.any(is_one).as_py():
        return column
    found = pc.if_else(is_one, pa.scalar(by, pa.string()), column.dictionary).dictionary_encode()
    return pa.DictionaryArray.from_arrays(found.indices.take(column.indices), found.dictionary)


def compact(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """In one piece, with the texts of its rows alone in the dictionary."""
    pieces = [_compact(piece) for piece in column.chunks]
    return pa.chunked_array(pieces, TEXTS).combine_chunks()


def _compact(column: pa.DictionaryArray) -> pa.DictionaryArray:
    used = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(used.indices, column.dictionary.take(used.dictionary))


def content(texts: pa.Array) -> bytes:
    """The bytes of all texts, one after the other."""
    offsets = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, texts.buffers()[1]], offset=texts.offset)
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    return texts.buffers()[2].slice(start, end - start).to_pybytes() if start < end else b""


def whole(column: pa.ChunkedArray) -> pa.Array:
    """In one piece; one that is it is not copied."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
