"""Rows of a Parquet file of a rollup whose first columns, by which it is sorted, have wanted texts.

pyarrow reads only the row groups and the columns that are needed, without the GIL.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def read(file: Path, wanted: Mapping[str, str], columns: Sequence[str], texts: Sequence[str]) -> pa.Table:
    """Return `columns` of the rows with the wanted texts, by column, in the order of the file.

    The file is sorted by the columns of `wanted`, which are its first ones. `texts` are the columns to read
    dictionary-encoded.
    """
    names = [*wanted]
    with pq.ParquetFile(file, read_dictionary=[*names, *texts]) as source:
        chosen = _row_groups(source.metadata, [*wanted.values()])
        sorted_by = source.read_row_groups(chosen, names, use_threads=False)
        is_wanted = reduce(pc.and_, (pc.equal(sorted_by[name], text) for name, text in wanted.items()))
        first, count = pc.index(is_wanted, True).as_py(), pc.sum(is_wanted).as_py() or 0
        return source.read_row_groups(chosen, columns, use_threads=False).slice(max(first, 0), count)


def count_row_groups(file: Path, wanted: Sequence[str]) -> int:
    """Return the number of row groups that may have a row with the wanted texts in its first columns."""
    return len(_row_groups(pq.read_metadata(file), wanted))


def _row_groups(metadata: pq.FileMetaData, wanted: Sequence[str]) -> list[int]:
    return [number for number in range(metadata.num_row_groups) if _may_have(metadata.row_group(number), wanted)]


def _may_have(group: pq.RowGroupMetaData, wanted: Sequence[str]) -> bool:
    statistics = [group.column(index).statistics for index in range(len(wanted))]
    return all(
        each is None or not each.has_min_max or each.min <= text <= each.max
        for each, text in zip(statistics, wanted, strict=True)
    )
