"""Hot rows in the memory of a reader: columns of the batches that the reader has read, without those it has dropped.

Rows are copied out of the messages of their batches, because a slice of a message would keep the whole message in
memory: a batch of a single row uses 18 kB until its row is copied.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection
from warehouse.lake import staging
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, TABLES, Spec

PIECES_MAX, PIECES_ROWS_MAX = 4_096, 16_384
"""Number of batches whose rows are copied at a time, and the number of rows after which no more batches are added. The
messages of these batches are in memory at the same time."""
_BATCH_ID = pa.field("batch_id", pa.int64())

Chunks = tuple[pa.RecordBatch, ...]


class HotRows:
    """Rows and staged files of batches, in order, for each table.

    All batches above `complete_above` and up to `last_id`, the newest batch that was read, are present.
    """

    def __init__(self, columns: Sequence[str], offset: int = 0) -> None:
        """Read nothing yet; the first read begins above `offset`.

        `columns` are those of the page views, which stay in memory. The rows of the other tables have the columns
        `Spec.hot`, and all rows have `batch_id`.
        """
        fields = {spec: [*spec.hot] for spec in TABLES} | {HITS_TABLE: [*map(HOT.field, columns)]}
        self._schemas = {spec: pa.schema([*each, _BATCH_ID]) for spec, each in fields.items()}
        self._chunks: Mapping[Spec, Chunks] = dict.fromkeys(self._schemas, ())
        self._staged: tuple[batches.Batch, ...] = ()
        self.complete_above = self.last_id = offset

    def read_waiting(self, hot: HotConnection) -> None:
        """Add the batches above `last_id` that wait to be loaded."""
        self._add(batches.waiting(hot, self.last_id))

    def read_through(self, hot: HotConnection, last_id: int) -> None:
        """Add all batches above `self.last_id` and up to `last_id`, whether they wait or are loaded."""
        self._add(batches.above(hot, self.last_id, last_id))

    def _add(self, added: Iterable[batches.Batch]) -> None:
        """Add batches. After an error nothing is added, and the next call repeats the read.

        The batches are read by one statement, and thus in one read transaction.
        """
        pieces: list[batches.Batch] = []
        rows = 0
        chunks, staged = self._chunks, self._staged
        complete_above, newest = self.complete_above, self.last_id
        for batch in added:
            if batch.id != newest + 1:  # the batches in between are loaded, and perhaps deleted
                complete_above = batch.id - 1
            newest = batch.id
            if batch.staged:
                staged = (*staged, batch)
                continue
            pieces.append(batch)
            rows += batch.rows.num_rows
            if len(pieces) == PIECES_MAX or rows >= PIECES_ROWS_MAX:
                chunks = self._with_rows(chunks, pieces)
                pieces, rows = [], 0
        self._chunks = self._with_rows(chunks, pieces) if pieces else chunks
        self._staged, self.complete_above, self.last_id = staged, complete_above, newest

    def _with_rows(self, chunks: Mapping[Spec, Chunks], pieces: Sequence[batches.Batch]) -> Mapping[Spec, Chunks]:
        """Return the chunks with a copy of the rows of batches.

        One copy takes half the time of selecting columns of each batch.
        """
        by_spec: dict[Spec, list[batches.Batch]] = {}
        for batch in pieces:
            by_spec.setdefault(batch.spec, []).append(batch)
        parts = staging.divide({spec: _with_ids(each) for spec, each in by_spec.items()})
        in_order = ((spec, part.sort_by("batch_id") if len(parts) > 1 else part) for spec, part in parts.items())
        added = {spec: _copied(part, self._schemas[spec]) for spec, part in in_order if part.num_rows}
        return {**chunks, **{spec: _appended(chunks[spec], rows) for spec, rows in added.items()}}

    @property
    def nbytes(self) -> int:
        """Return the memory of the rows, in bytes."""
        return sum(chunk.get_total_buffer_size() for chunks in self._chunks.values() for chunk in chunks)

    def drop_through(self, offset: int) -> None:
        """Remove the batches up to `offset` from memory, and do not read them any more."""
        self.complete_above, self.last_id = max(self.complete_above, offset), max(self.last_id, offset)
        self._staged = tuple(batch for batch in self._staged if batch.id > offset)
        self._chunks = {spec: _above(chunks, offset) for spec, chunks in self._chunks.items()}

    def rows(self, spec: Spec, offset: int, last_id: int = batches.ID_MAX) -> pa.Table:
        """Return a table's rows of the batches above `offset` and up to `last_id`, in the order of their batches."""
        slices = (_between(chunk, offset, last_id) for chunk in self._chunks[spec])
        return pa.Table.from_batches([rows for rows in slices if rows.num_rows], self._schemas[spec])

    def staged_files(
        self, spec: Spec, folder: Root, offset: int, last_id: int = batches.ID_MAX
    ) -> tuple[tuple[File, ...], int]:
        """Return a table's staged files of the batches above `offset` and up to `last_id`, and the last such batch.

        `folder` is the table's. The last batch is 0 without staged files.
        """
        staged = [batch for batch in self._staged if offset < batch.id <= last_id]
        files = [file for batch in staged if batch.staged for file in batch.staged.files(spec, folder)]
        return tuple(files), staged[-1].id if staged else 0


def _with_ids(pieces: Sequence[batches.Batch]) -> pa.Table:
    rows = pa.Table.from_batches([batch.rows for batch in pieces])
    ids = np.repeat([batch.id for batch in pieces], [batch.rows.num_rows for batch in pieces])
    return rows.append_column(_BATCH_ID, pa.array(ids, pa.int64()))


def _copied(rows: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    columns = (pa.concat_arrays(column.chunks) for column in rows.select(schema.names).columns)
    return pa.RecordBatch.from_arrays([*columns], schema=schema)


def _appended(chunks: Chunks, last: pa.RecordBatch) -> Chunks:
    """Return the chunks with another one added.

    Each chunk has more rows than the next one: 500,000 rows have at most 1,000 chunks, and equal batches at most 20.
    """
    before = [*chunks]
    while before and before[-1].num_rows <= last.num_rows:
        last = pa.concat_batches([before.pop(), last])
    return (*before, last)


def _above(chunks: Chunks, offset: int) -> Chunks:
    return tuple(
        chunk if _first_id(chunk) > offset else chunk.filter(pc.greater(chunk["batch_id"], offset))
        for chunk in chunks
        if _last_id(chunk) > offset
    )


def _between(chunk: pa.RecordBatch, offset: int, last_id: int) -> pa.RecordBatch:
    if _first_id(chunk) > offset and _last_id(chunk) <= last_id:
        return chunk
    start, end = chunk["batch_id"].to_numpy().searchsorted([offset, last_id], side="right")
    return chunk.slice(start, end - start)


def _first_id(chunk: pa.RecordBatch) -> int:
    return int(chunk["batch_id"][0].as_py())


def _last_id(chunk: pa.RecordBatch) -> int:
    return int(chunk["batch_id"][-1].as_py())
