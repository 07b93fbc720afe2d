"""Rows of a Parquet file of a rollup whose first columns, by which it is sorted, have wanted texts.

pyarrow reads only the row groups and the columns that are needed, without the GIL.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.lake import roots
from warehouse.lake.roots import Root


def read(
    file: Root,
    wanted: Mapping[str, str],
    columns: Sequence[str],
    texts: Sequence[str],
    condition: pc.Expression | None = None,
) -> pa.Table:
    """Return `columns` of the rows with the wanted texts, by column, in the order of the file.

    The file is sorted by the columns of `wanted`, which are its first ones. `texts` are the columns to read
    dictionary-encoded. With a `condition` over `columns`, only the rows that meet the condition are returned.

    Row groups are read one by one: Arrow needs three times the memory of the rows of a row group.
    """
    with pq.ParquetFile(roots.open_parquet(file), read_dictionary=[*wanted, *texts]) as source:
        chosen = _row_groups(source.metadata, [*wanted.values()])
        tables = [_read_group(source, number, wanted, columns, condition) for number in chosen]
        return pa.concat_tables(tables) if tables else source.read_row_groups([], columns)


def _read_group(
    source: pq.ParquetFile,
    number: int,
    wanted: Mapping[str, str],
    columns: Sequence[str],
    condition: pc.Expression | None,
) -> pa.Table:
    metadata = source.metadata.row_group(number)
    if all(has_only(metadata.column(index).statistics, text) for index, text in enumerate(wanted.values())):
        rows = source.read_row_group(number, columns, use_threads=False)
        return rows if condition is None else rows.filter(condition)
    sorted_by = source.read_row_group(number, [*wanted], use_threads=False)
    is_wanted = reduce(pc.and_, (pc.equal(sorted_by[name], text) for name, text in wanted.items()))
    first, count = pc.index(is_wanted, True).as_py(), pc.sum(is_wanted).as_py() or 0
    rows = source.read_row_group(number, columns, use_threads=False).slice(max(first, 0), count)
    return rows if condition is None else rows.filter(condition)


def has_only(statistics: pq.Statistics | None, text: str) -> bool:
    """Return whether the statistics of a column show that all of its rows have a text.

    The minimum and the maximum of a column may be bounds that no row has.
    """
    return (
        statistics is not None
        and statistics.has_min_max
        and statistics.null_count == 0
        and statistics.min == text == statistics.max
    )


def count_row_groups(file: Root, wanted: Sequence[str]) -> int:
    """Return the number of row groups that may have a row with the wanted texts in its first columns."""
    return len(_row_groups(pq.read_metadata(roots.open_parquet(file)), wanted))


def _row_groups(metadata: pq.FileMetaData, wanted: Sequence[str]) -> list[int]:
    return [number for number in range(metadata.num_row_groups) if _may_have(metadata.row_group(number), wanted)]


def _may_have(group: pq.RowGroupMetaData, wanted: Sequence[str]) -> bool:
    statistics = [group.column(index).statistics for index in range(len(wanted))]
    return all(
        each is None or not each.has_min_max or each.min <= text <= each.max
        for each, text in zip(statistics, wanted, strict=True)
    )
