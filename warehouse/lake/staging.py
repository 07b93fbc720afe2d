"""Staged files: many rows, written as Parquet files into the folders of the tables before any commit.

The loader writes the rows of the hot log as such files, too, and commits them at once. Those of an import count once
the hot log has a batch that names the files. From then on every query includes them, and the loader adds the files to
the Delta logs of the tables. If the writer is killed before, a vacuum removes the files.
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse import encoding, requests
from warehouse.errors import StagedTooLong
from warehouse.lake import delta_table, roots, row_groups
from warehouse.lake.roots import Root
from warehouse.tables import HITS_TABLE, REQUESTS_TABLE, TABLES, Spec

_ENCODINGS = {"ts": "DELTA_BINARY_PACKED"}
"""Encodings of columns whose values are mostly distinct. A file of `hits` is a sixth smaller than with a dictionary."""

_WRITE_BATCH_VALUES = 65_536
"""Number of values that the Parquet writer encodes at a time; smaller batches are slower."""

THREADS = 2
"""Number of threads that write files."""

REQUESTS_AT_ONCE = 8
"""Number of files about which an object store is asked at once: a log of a year has 377 files."""


class StagedFile(msgspec.Struct, frozen=True):
    """A file: path within the table's folder, value of the partition column, size in bytes, and number of rows."""

    path: str
    partition: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Staged:
    """The files of one set of rows, by the name of their table.

    Batches of older releases have no files of newer tables, and may name files of a table that no longer exists.
    """

    tables: Mapping[str, tuple[StagedFile, ...]]

    def files(self, spec: Spec, folder: Root) -> tuple[delta_table.File, ...]:
        """Return the files of a table, with their paths in its folder."""
        return tuple(_at(folder, file) for file in self.tables.get(spec.name, ()))

    @property
    def hits(self) -> int:
        return sum(file.rows for file in self.tables.get(HITS_TABLE.name, ()))


def _at(folder: Root, file: StagedFile) -> delta_table.File:
    return delta_table.File(str(folder / file.path), file.partition, file.bytes, file.rows)


def divide(rows: Mapping[Spec, pa.Table]) -> dict[Spec, pa.Table]:
    """Return the rows of each table among the rows of batches, which are by the table that the batch names."""
    tables = dict(rows)
    if HITS_TABLE in rows:
        tables[HITS_TABLE], asked = requests.split(rows[HITS_TABLE])
        if asked.num_rows:
            own = [rows[spec].cast(asked.schema) for spec in rows if spec is REQUESTS_TABLE]
            tables[REQUESTS_TABLE] = pa.concat_tables([added_up(REQUESTS_TABLE, asked), *own])
    return tables


def added_up(spec: Spec, rows: pa.Table) -> pa.Table:
    """Return rows of a table of counts, which may have more columns, with counts of the same key added up."""
    sums = dict(spec.sums)
    key = [name for name in rows.column_names if name not in sums]
    groups = rows.group_by(key, use_threads=False).aggregate([*sums.items()])
    return groups.rename_columns([*key, *sums]).select(rows.column_names).cast(rows.schema)


def stage(root: Root, rows: Mapping[Spec, pa.Table]) -> Staged:
    """Write rows with the columns of their batches to sorted files; texts may be dictionary-encoded.

    Call `sync` before a transaction names the files.
    """
    with ThreadPoolExecutor(THREADS, "stage") as pool:
        return Staged(
            {
                spec.name: tuple(
                    pool.map(partial(_write, root, spec), _parts(table_rows(spec, chosen), spec.partition))
                )
                for spec, chosen in divide(rows).items()
                if chosen.num_rows
            }
        )


def write(root: Root, spec: Spec, rows: pa.Table) -> tuple[delta_table.File, ...]:
    """Write the rows of one table to sorted and synced files, one for each partition, and return the files.

    `rows` has the columns of a batch, as `divide` returns them. Texts may be dictionary-encoded. A load of 500,000 hits
    takes 81 MiB and 1.1 s of processor time; it took 189 MiB and 2.1 s when delta-rs wrote the files.
    """
    parts = _parts(table_rows(spec, rows), spec.partition) if rows.num_rows else ()
    written = (_write(root, spec, part) for part in parts)
    files = tuple(_at(root / spec.name, file) for file in written)
    root.sync(file.path for file in files)
    return files


def sync(root: Root, staged: Staged) -> None:
    """Wait until staged files are on the disk.

    The call is separate from `stage`, so that a thread can write the next files meanwhile.
    """
    root.sync(_paths(root, staged))


def finish(root: Root, staged: Staged) -> float:
    """Sync staged files, and return the time of the first write in seconds since 1970; 0 if a file is missing.

    An object store is asked for the time of each file: call this before the transaction that names the files.
    """
    try:
        sync(root, staged)
    except FileNotFoundError:
        return 0
    return min(_written_s(_paths(root, staged)), default=time.time())


def find_missing(root: Root, spec: Spec, staged: Staged) -> str | None:
    """Return the path of a file of one table that does not exist; None if all exist."""
    paths = [file.path for file in staged.files(spec, root / spec.name)]
    return next((path for path, written_s in zip(paths, _written_s(paths), strict=True) if not written_s), None)


def _written_s(paths: Sequence[str]) -> list[float]:
    """Return the time of the last write of each file, in seconds since 1970; 0 for a missing file."""
    with ThreadPoolExecutor(REQUESTS_AT_ONCE, "requests") as pool:
        return list(pool.map(roots.modified_s, paths))


def _paths(root: Root, staged: Staged) -> list[str]:
    return [file.path for spec in TABLES for file in staged.files(spec, root / spec.name)]


def require_fresh(written_s: float) -> None:
    """Require, in the transaction that names staged files, that no vacuum has removed them or is about to.

    `written_s` is the time that `finish` returned.

    Raises:
        StagedTooLong: the files are missing or too old, for example because the process was suspended after `stage`.
    """
    if written_s < time.time() - delta_table.GRACE_H * 3600 / 2:
        raise StagedTooLong(
            "the process was suspended for so long that a vacuum may have removed its files: run the command again, "
            "which continues after the stored rows"
        )


def table_rows(spec: Spec, rows: pa.Table) -> pa.Table:
    """Return rows of `divide` as rows of a table: in the order of a file, with counts of the same key added up."""
    if spec.sums:
        rows = added_up(spec, rows.select(spec.schema.names).cast(spec.schema))
    return _sorted(spec, _encoded(spec, rows))


def _encoded(spec: Spec, rows: pa.Table) -> pa.Table:
    """Return the rows with their UTC day, and with dictionary-encoded texts.

    The dictionaries of the sort keys are sorted, so that their indices have the order of the texts.
    """
    columns = {name: encoding.encoded(column) for name, column in zip(rows.column_names, rows.columns, strict=True)}
    if "date" not in columns:
        columns["date"] = columns["ts"].cast(pa.date32())
    texts = [name for name in (*spec.order, spec.partition) if pa.types.is_dictionary(columns[name].type)]
    columns |= {name: encoding.with_sorted_dictionary(columns[name]) for name in texts}
    return pa.table(columns)


def _sorted(spec: Spec, encoded: pa.Table) -> pa.Table:
    keys = encoding.indices(encoded, [*reversed(spec.order), spec.partition])
    order = pa.array(np.lexsort([key for column in keys.columns for key in _sort_keys(column)]))
    return pa.table({name: _take(encoded[name].chunk(0), order) for name in encoded.column_names})


def _sort_keys(column: pa.ChunkedArray) -> Iterable[npt.NDArray[Any]]:
    """Return the keys by which NumPy sorts a column, the last one first: missing values are last."""
    if not column.null_count:
        return (_narrow(column.to_numpy()),)
    return _narrow(column.fill_null(0).to_numpy()), column.is_null().to_numpy()


def _narrow(keys: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return integers, or dates as integers, in 16 bits if their range allows it: NumPy sorts these by their bytes.

    In one run, the rows of 350,000 lines were sorted and copied in 31 ms of processor time; in 58 ms if Arrow sorted
    them, and in 145 ms if Polars did, which also takes 0.2 s and 32 MiB to import.
    """
    numbers = keys.view(np.int64) if keys.dtype.kind == "M" else keys
    if not len(numbers) or int(np.max(numbers)) - int(np.min(numbers)) >= 1 << 16:  # the difference may take 65 bits
        return numbers
    narrow: npt.NDArray[Any] = (numbers - np.min(numbers)).astype(np.uint16)
    return narrow


def _take(column: pa.Array, order: pa.Array) -> pa.Array:
    """Return the column in another order, without a copy if all rows have one value or none, as in several columns."""
    is_one = pa.types.is_dictionary(column.type) and len(column.dictionary) == 1 and column.null_count == 0
    return column if is_one or column.null_count == len(column) else column.take(order)


def _parts(rows: pa.Table, column: str) -> Iterator[tuple[str, pa.Table]]:
    """Yield the name and the rows of each partition. Rows are sorted by `column`, a date or the text of a month.

    The column is omitted, because the name of the partition's folder has it.
    """
    runs = pc.run_end_encode(encoding.decoded(rows[column].combine_chunks()))
    start = 0
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield str(value), rows.slice(start, end - start).drop_columns([column])
        start = end


def _write(root: Root, spec: Spec, part: tuple[str, pa.Table]) -> StagedFile:
    value, rows = part
    relative = f"{spec.partition}={value}/staged-{uuid.uuid4()}.parquet"
    file = root / spec.name / relative
    schema = pa.schema([field for field in spec.schema if field.name != spec.partition])
    columns = _compact(rows, schema)
    encoded = [field.name for field in columns.schema if field.name not in _ENCODINGS and field.type != pa.string()]
    with file.new_file() as local:
        with pq.ParquetWriter(
            local,
            columns.schema,
            compression="lz4",  # until compaction; zstd is a sixth smaller and takes a sixth longer
            write_batch_size=_WRITE_BATCH_VALUES,
            write_statistics=[*spec.order],  # no query skips row groups by another column
            use_dictionary=encoded,
            column_encoding={name: _ENCODINGS[name] for name in schema.names if name in _ENCODINGS},
            store_schema=False,  # or readers would get dictionaries in place of texts
        ) as writer:
            for group in row_groups.split([columns]):
                writer.write_table(_with_own_dictionaries(group), row_groups.ROWS_MAX)
        return StagedFile(relative, value, local.stat().st_size, rows.num_rows)


def _with_own_dictionaries(group: pa.Table) -> pa.Table:
    """Return a row group without texts of other row groups that are too many, because it has whole dictionaries."""
    for index, column in enumerate(group.columns):
        if row_groups.has_large_dictionary(column.chunk(0)):
            own = column.cast(pa.string()).dictionary_encode().cast(column.type)
            group = group.set_column(index, group.schema.field(index), own)
    return group


def _compact(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of a file, with their nullability.

    A column whose dictionary has more than half as many texts as the part has rows is decoded, because the file would
    have the whole dictionary, with the texts of other parts.
    """
    columns = {name: rows[name].chunk(0) for name in schema.names}
    for name, column in columns.items():
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > rows.num_rows // 2:
            columns[name] = column.cast(pa.string())
    fields = [pa.field(name, column.type, schema.field(name).nullable) for name, column in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
