"""Tables as CSV, Parquet and NDJSON, written chunk by chunk from batches of rows."""

import csv
import io
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from api.http.operation import CSV, NDJSON, PARQUET
from warehouse.query.time_range import FIRST
from warehouse.report.results import Query

_FORMULA = r"\A([=+\-@\t\r])"
"""Beginning of a text that a spreadsheet would compute instead of showing it, as an RE2 pattern.

https://owasp.org/www-community/attacks/CSV_Injection
"""

BATCH_ROWS = 10_000
"""Number of rows of a batch, which is one chunk of a table and one row group of Parquet."""

Chunks = Generator[bytes, None, None]
Batches = Iterable[pa.RecordBatch]


def file_stem(project: str, report: str, first: date | None, last: date) -> str:
    """Return the name, without its suffix, of a file with a report of the days `first` to `last`, both included.

    `first` is None for all time.
    """
    days = f"until-{last}" if first is None else f"{first}" if first == last else f"{first}_{last}"
    return f"{project}-{report}-{days}"


def file_stem_of(query: Query, report: str) -> str:
    """Return the name, without its suffix, of a file with a report of the UTC days of a query."""
    last = max(query.start, min(query.end or query.now, query.now) - timedelta.resolution)
    return file_stem(query.project, report, None if query.start == FIRST else query.start.date(), last.date())


def rebatched(schema: pa.Schema, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the columns of `schema` in batches of BATCH_ROWS rows; only the last batch may have fewer.

    Equal tables then have equal bytes in every format, whatever batches they arrive in.
    """
    waiting = schema.empty_table()
    for batch in batches:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch.select(schema.names)])])
        while waiting.num_rows >= BATCH_ROWS:
            yield from _one_batch(waiting.slice(0, BATCH_ROWS))
            waiting = waiting.slice(BATCH_ROWS)
    yield from _one_batch(waiting)


def _one_batch(rows: pa.Table) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = rows.combine_chunks().to_batches()
    return batches


@dataclass(frozen=True, slots=True)
class Format:
    """A format of tables: the suffix of its file name, and the function that yields the chunks of the file."""

    suffix: str
    chunks: Callable[[pa.Schema, Batches], Chunks]


def _csv(schema: pa.Schema, batches: Batches) -> Chunks:
    """Yield the chunks of a CSV file (RFC 4180) with a header line. A null is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(schema.names)
    for batch in batches:
        writer.writerows(zip(*map(_csv_cells, batch.columns), strict=True))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _csv_cells(column: pa.Array) -> list[Any]:
    """Return the cells of a column, with an apostrophe before each text that a spreadsheet would compute.

    Times are in ISO 8601, and the texts of a list have a space between them.
    """
    if pa.types.is_string(column.type):
        column = pc.replace_substring_regex(column, _FORMULA, r"'\1")
    cells: list[Any] = column.to_pylist()
    if pa.types.is_timestamp(column.type):
        return [cell and cell.isoformat() for cell in cells]
    return [" ".join(map(str, cell)) for cell in cells] if pa.types.is_list(column.type) else cells


def _ndjson(schema: pa.Schema, batches: Batches) -> Chunks:
    encoder = msgspec.json.Encoder()
    for batch in batches:
        yield encoder.encode_lines(batch.to_pylist())


def _parquet(schema: pa.Schema, batches: Batches) -> Chunks:
    """Yield the chunks of a Parquet file, with a row group for each batch."""
    sink = _Sink()
    with pq.ParquetWriter(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A write-only file. `take` returns its content in chunks."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, chunk: Any) -> int:
        self._chunks.append(bytes(chunk))
        self._position += len(chunk)
        return len(chunk)

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)


FORMATS = {CSV: Format("csv", _csv), PARQUET: Format("parquet", _parquet), NDJSON: Format("ndjson", _ndjson)}
"""Formats of tables, by media type."""
