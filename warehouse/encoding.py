"""Dictionary encoding of columns in memory: an index for each row, and each text once."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

PIECE_ROWS, PIECE_BYTES = 8_192, 8 * 1024 * 1024
"""Numbers of rows and bytes that are encoded at once."""


class EncodedRows:
    """Rows of batches with dictionary-encoded texts.

    The rows are encoded in pieces, so that the texts of only one piece are in memory: 100,000 hits take 10 MiB instead
    of 45.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._pieces: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= PIECE_ROWS or self._bytes >= PIECE_BYTES:
            self._encode()

    def table(self) -> pa.Table:
        """Return all rows. Each piece has its own dictionaries."""
        if self._batches or not self._pieces:
            self._encode()
        return pa.concat_tables(self._pieces)

    def _encode(self) -> None:
        rows = pa.Table.from_batches(self._batches, self._schema).combine_chunks()
        columns = [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in rows.columns]
        self._pieces.append(pa.table(columns, self._schema.names))
        self._batches, self._rows, self._bytes = [], 0, 0


def encoded(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, dictionary-encoded if it has texts."""
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    return column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def with_sorted_dictionary(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return a column whose indices have the order of the texts."""
    order = pc.sort_indices(column.dictionary)
    texts = column.dictionary.take(order)
    if texts.equals(column.dictionary):
        return column
    index_of = pc.sort_indices(order).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(index_of.take(column.indices), texts)


def decoded(column: pa.Array) -> pa.Array:
    """Return a column with its texts in place of indices."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def indices(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of one piece each, with the indices of texts in place of the texts."""
    columns = {name: table[name].chunk(0) for name in names}
    return pa.table({name: getattr(column, "indices", column) for name, column in columns.items()})
