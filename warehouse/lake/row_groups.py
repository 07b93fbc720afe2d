"""Row groups of the Parquet files of the lake, which are limited in rows and in bytes.

DuckDB decodes a page of a column at once, and a page may be as large as its row group.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.lake import roots

ROWS_MAX = 64 * 1024
"""Maximum number of rows in a row group: small, so that a query of one project reads few rows of other projects."""
BYTES_MAX = 8 * 1024 * 1024
"""Maximum size of the values in a row group, in bytes, with each text as often as it occurs. A larger row is alone."""
DICTIONARY_BYTES_MAX = 512 * 1024
"""Size of a dictionary, in bytes, up to which only the indices of its texts are counted."""

_Bounds = tuple[str, str] | None
"""The smallest and the largest text of a column in a row group, if they are known."""


def split(tables: Iterable[pa.Table], bytes_max: int = BYTES_MAX) -> Iterator[pa.Table]:
    """Yield the rows of tables in row groups."""
    group: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        ends: npt.NDArray[np.int64] = np.cumsum(_row_bytes(table))
        start = before = 0
        while start < table.num_rows:
            fits = int(np.searchsorted(ends, before + bytes_max - size, "right"))
            end = min(max(fits, start + (not group)), start + ROWS_MAX - rows)
            if end > start:
                group.append(table.slice(start, end - start))
                rows, size = rows + end - start, size + int(ends[end - 1]) - before
                start, before = end, int(ends[end - 1])
            if start < table.num_rows:
                yield pa.concat_tables(group)
                group, rows, size = [], 0, 0
    if group:
        yield pa.concat_tables(group)


def rows_for(paths: Iterable[str]) -> int:
    """Return the number of rows in a row group for a writer that cannot limit bytes, and writes the rows of files.

    A row group then has at most three times BYTES_MAX.
    """
    files = (pq.read_metadata(roots.at(path).open_parquet()) for path in paths)
    groups = (file.row_group(number) for file in files for number in range(file.num_row_groups))
    return min((rows_of(each.total_byte_size // each.num_rows) for each in groups if each.num_rows), default=ROWS_MAX)


def path_bytes(file: str, project: str) -> int:
    """Return the size of the paths in the row groups of a file that may have rows of a project, in bytes."""
    return sum(size for _, size, (projects, _) in _groups(file) if _may_have(projects, project))


def path_rows(file: str, project: str, path: str) -> int:
    """Return the number of rows in the row groups of a file that may have rows of a path of a project."""
    groups = _groups(file)
    return sum(rows for rows, _, bounds in groups if all(map(_may_have, bounds, (project, path))))


@lru_cache(4_096)
def _groups(file: str) -> Sequence[tuple[int, int, Sequence[_Bounds]]]:
    """Return the rows, the size of the paths in bytes, and the bounds of projects and paths of each row group.

    A file never changes. Its first column has the projects.
    """
    metadata = _metadata(file)
    if metadata is None:
        return ()
    index = metadata.schema.names.index("path")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [(each.num_rows, each.column(index).total_uncompressed_size, _bounds(each, (0, index))) for each in groups]


def _bounds(group: pq.RowGroupMetaData, columns: Iterable[int]) -> list[_Bounds]:
    known = (group.column(column).statistics for column in columns)
    return [(each.min, each.max) if each is not None and each.has_min_max else None for each in known]


def _may_have(bounds: _Bounds, text: str) -> bool:
    return bounds is None or bounds[0] <= text <= bounds[1]


@lru_cache(65_536)
def latest(path: str) -> datetime | None:
    """Return the time of the last hit in a file of `hits`; None if the file does not have it in its statistics."""
    metadata = _metadata(path)
    if metadata is None or "ts" not in metadata.schema.names:
        return None
    index = metadata.schema.names.index("ts")
    times = [metadata.row_group(number).column(index).statistics for number in range(metadata.num_row_groups)]
    known = [each.max for each in times if each is not None and each.has_min_max]
    return max(known, default=None) if len(known) == len(times) else None


@lru_cache(65_536)
def has_large(path: str) -> bool:
    """Return whether a file has a row group of more than twice BYTES_MAX, as older releases wrote.

    The values of a smaller row group may take up to BYTES_MAX: lengths of texts and headers are added to them.
    """
    metadata = _metadata(path)
    return metadata is not None and any(
        metadata.row_group(number).total_byte_size > 2 * BYTES_MAX for number in range(metadata.num_row_groups)
    )


def _metadata(path: str) -> pq.FileMetaData | None:
    """Return the metadata of a file. One that is missing or damaged is left to the reader of its rows, who names it."""
    try:
        return pq.read_metadata(roots.at(path).open_parquet())
    except (OSError, pa.ArrowInvalid):
        return None


def rows_of(row_bytes: int) -> int:
    """Return the number of rows in a row group of rows of this size."""
    return max(1, min(ROWS_MAX, BYTES_MAX // max(1, row_bytes)))


def has_large_dictionary(texts: pa.Array) -> bool:
    """Return whether a column is dictionary-encoded, with more than DICTIONARY_BYTES_MAX of texts."""
    return bool(pa.types.is_dictionary(texts.type) and texts.dictionary.nbytes > DICTIONARY_BYTES_MAX)


def _row_bytes(table: pa.Table) -> npt.NDArray[np.int64]:
    """Return the size of the values of each row, in bytes."""
    sizes = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        start = 0
        for chunk in column.chunks:
            sizes[start : start + len(chunk)] += _value_bytes(chunk)
            start += len(chunk)
    return sizes


def _value_bytes(values: pa.Array) -> npt.NDArray[np.int32] | int:
    if has_large_dictionary(values):
        lengths = pc.binary_length(values.dictionary).take(values.indices)
    elif pa.types.is_string(values.type):
        lengths = pc.binary_length(values)
    else:
        return max(1, int(values.type.bit_width) // 8)
    of_rows: npt.NDArray[np.int32] = pc.fill_null(lengths, 0).to_numpy()
    return of_rows
