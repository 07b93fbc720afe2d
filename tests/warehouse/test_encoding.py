"""Dictionary encoding of columns in memory."""

import pyarrow as pa
import pytest

from warehouse import encoding

TEXTS = ["b", None, "a", "b", "c"]


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([TEXTS]),
        pa.chunked_array([TEXTS[:2], TEXTS[2:]]),
        pa.chunked_array([pa.array(TEXTS[:2]).dictionary_encode(), pa.array(TEXTS[2:]).dictionary_encode()]),
    ],
    ids=["texts", "two chunks", "two dictionaries"],
)
def test_texts_are_encoded_with_one_dictionary(column: pa.ChunkedArray) -> None:
    encoded = encoding.encoded(column)
    assert (encoded.indices.to_pylist(), encoded.dictionary.to_pylist()) == ([0, None, 1, 0, 2], ["b", "a", "c"])
    assert encoding.decoded(encoded).equals(pa.array(TEXTS))


def test_numbers_are_not_encoded() -> None:
    assert encoding.encoded(pa.chunked_array([[3], [1]])).equals(pa.array([3, 1]))
    assert encoding.decoded(pa.array([3, 1])).equals(pa.array([3, 1]))


@pytest.mark.parametrize("texts", [["b", None, "a", "b", "c"], ["a", "b", None], [], [None]])
def test_indices_of_a_sorted_dictionary_have_the_order_of_the_texts(texts: list[str | None]) -> None:
    column = encoding.with_sorted_dictionary(pa.array(texts, pa.string()).dictionary_encode())
    assert column.to_pylist() == texts
    assert column.dictionary.to_pylist() == sorted({text for text in texts if text is not None})


def test_indices_replace_texts_and_leave_other_columns() -> None:
    table = pa.table({"text": pa.array(["b", "a"]).dictionary_encode(), "number": [7, 8], "other": [0, 0]})
    assert encoding.indices(table, ["number", "text"]).to_pydict() == {"number": [7, 8], "text": [0, 1]}


@pytest.mark.parametrize("rows", [0, 1, encoding.PIECE_ROWS - 1, encoding.PIECE_ROWS, encoding.PIECE_ROWS + 1])
def test_rows_of_batches_are_encoded_in_their_order(rows: int) -> None:
    schema = pa.schema([pa.field("text", pa.string(), nullable=False), ("number", pa.int16())])
    table = pa.table({"text": [f"text {n % 7}" for n in range(rows)], "number": [n % 100 for n in range(rows)]})
    added = encoding.EncodedRows(schema)
    for batch in table.cast(schema).to_batches(max_chunksize=1_000):
        added.add(batch)
    encoded = added.table()
    assert encoded.schema.types == [pa.dictionary(pa.int32(), pa.string()), pa.int16()]
    assert encoded.cast(schema).equals(table.cast(schema))
