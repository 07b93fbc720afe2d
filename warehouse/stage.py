"""Many rows at once into Parquet files in the folders of both tables, before any commit.

They are counted once a hot batch that names them is stored: from then on every reader has them, and the loader puts
them into the tables' own logs. What is never named, because its writer was killed, a vacuum finds and removes.
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse import lake
from warehouse.errors import StagedTooLong
from warehouse.schema import DAILY_VIEWS

_STATISTICS = {"hits": ["project_id", "path", "ts"], "daily_views": ["project_id", "path", "date"]}
"""Those of the order of a file: no query skips row groups by another, and they cost a third of the writing."""

_ENCODINGS = {"ts": "DELTA_BINARY_PACKED"}
"""Of columns that a dictionary would only make larger: so `hits` is a sixth smaller, and sooner written."""


class StagedFile(msgspec.Struct, frozen=True):
    """One file: its path within the table's folder, the value of the partition column, its size and rows."""

    path: str
    partition: str
    bytes: int
    rows: int


class Staged(msgspec.Struct, frozen=True):
    """The files that hold one set of rows, for each table."""

    hits: tuple[StagedFile, ...]
    daily_views: tuple[StagedFile, ...]

    def files(self, spec: lake.Spec, folder: Path) -> tuple[lake.File, ...]:
        """Those of a table, as its folder has them."""
        staged = self.hits if spec is lake.HITS_TABLE else self.daily_views
        return tuple(lake.File(str(folder / file.path), file.partition, file.bytes, file.rows) for file in staged)


def stage(root: Path, rows: pa.Table) -> Staged:
    """Write rows of the columns of `schema.HOT`, texts dictionary-encoded or not: sorted, and safely on the disk."""
    dated = _dated(rows)
    return Staged(
        hits=tuple(_write(root, lake.HITS_TABLE, _parts(_sorted(dated), "date"))),
        daily_views=tuple(_write(root, lake.DAILY_VIEWS_TABLE, _parts(_counted(dated), "month"))),
    )


def require_fresh(root: Path, staged: Staged) -> None:
    """Make sure, in the transaction that names staged files, that no vacuum takes them for forgotten ones.

    Raises:
        StagedTooLong: they were written so long ago that one may have, as when a process was suspended in between.
    """
    oldest_s = time.time() - lake.GRACE_H * 3600 / 2
    for spec in lake.TABLES:
        for file in staged.files(spec, root / spec.name):
            path = Path(file.path)
            if not path.exists() or path.stat().st_mtime < oldest_s:
                raise StagedTooLong(
                    "this stood still for so long that what it had written may be gone: run it again, and it goes on "
                    "from what is stored"
                )


def _dated(rows: pa.Table) -> pa.Table:
    """With the UTC day, and each text by its place in a dictionary: nothing below compares the texts of two rows."""
    columns = {name: _encoded(column) for name, column in zip(rows.column_names, rows.columns, strict=True)}
    ordered = {name: _ordered(columns[name]) for name in ("project_id", "path")}
    return pa.table({**columns, **ordered, "date": pc.cast(columns["ts"], pa.date32())})


def _encoded(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_string(column.type):
        column = column.dictionary_encode()
    return column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _ordered(encoded: pa.DictionaryArray) -> pa.DictionaryArray:
    """With its dictionary sorted, so that the order of the places is that of the texts."""
    order = pc.sort_indices(encoded.dictionary)
    place_of = pc.sort_indices(order).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(place_of.take(encoded.indices), encoded.dictionary.take(order))


def _sorted(dated: pa.Table) -> pa.Table:
    order = ("date", *lake.HITS_TABLE.order)
    keys = pa.table({name: _numbers(dated[name]) for name in order})
    return dated.take(pc.sort_indices(keys, [(name, "ascending") for name in order]))


def _numbers(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array.indices if pa.types.is_dictionary(array.type) else array


def _counted(dated: pa.Table) -> pa.Table:
    """Views of each day, project, path, traffic and agent, in the order of a file.

    One number stands for all of these, and its order is theirs: five columns take several times as long.
    """
    days = dated["date"].combine_chunks().dictionary_encode()
    months = pc.strftime(days.dictionary, format="%Y-%m")
    columns = {
        "month": _ordered(_encoded(pa.chunked_array([months.take(days.indices)]))),
        **{name: dated[name].combine_chunks() for name in ("project_id", "path")},
        "date": _ordered(days),
        **{name: dated[name].combine_chunks() for name in ("traffic", "agent")},
    }
    number = pa.repeat(pa.scalar(0, pa.int64()), dated.num_rows)
    for column in columns.values():
        code = pc.add(column.indices.cast(pa.int64()).fill_null(-1), 1)  # 0 for null
        number = pc.add(pc.multiply_checked(number, len(column.dictionary) + 1), code)
    counted = number.value_counts()
    counted = counted.take(pc.sort_indices(counted.field("values")))
    rest, found = counted.field("values"), {"views": counted.field("counts")}
    for name in reversed(columns):
        size = len(columns[name].dictionary) + 1
        above = pc.divide(rest, size)
        code = pc.subtract(pc.subtract(rest, pc.multiply(above, size)), 1)
        found[name] = columns[name].dictionary.take(pc.if_else(pc.less(code, 0), None, code))
        rest = above
    return pa.table({name: found[name] for name in DAILY_VIEWS.names}).cast(DAILY_VIEWS)


def _parts(rows: pa.Table, column: str) -> Iterator[tuple[str, pa.Table]]:
    """The rows, which are in the order of `column`, by its values; without it, as Delta's files are."""
    runs = pc.run_end_encode(rows[column].combine_chunks())
    start = 0
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield str(value), rows.slice(start, end - start).drop_columns([column])
        start = end


def _write(root: Path, spec: lake.Spec, parts: Iterator[tuple[str, pa.Table]]) -> Iterator[StagedFile]:
    for value, rows in parts:
        relative = f"{spec.partition}={value}/staged-{uuid.uuid4()}.parquet"
        file = root / spec.name / relative
        file.parent.mkdir(exist_ok=True)
        schema = pa.schema([field for field in spec.schema if field.name != spec.partition])
        pq.write_table(
            _compact(rows.select(schema.names)),
            file,
            compression="zstd",
            compression_level=1,  # until compaction: 3 takes a tenth longer and saves as much
            row_group_size=lake.ROW_GROUP_ROWS,
            write_statistics=_STATISTICS[spec.name],
            use_dictionary=[name for name in schema.names if name not in _ENCODINGS],
            column_encoding={name: _ENCODINGS[name] for name in schema.names if name in _ENCODINGS},
            store_schema=False,  # a reader finds texts, not the dictionaries that they were written from
        )
        lake.sync(file)
        lake.sync(file.parent)
        yield StagedFile(relative, value, file.stat().st_size, rows.num_rows)
    lake.sync(root / spec.name)  # it names the folders of new partitions


def _compact(rows: pa.Table) -> pa.Table:
    """Columns whose dictionary has more texts than there are rows without it: all of it would be in the file."""
    for index, name in enumerate(rows.column_names):
        column = rows[name].combine_chunks()
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > rows.num_rows // 2:
            rows = rows.set_column(index, name, column.cast(pa.string()))
    return rows
