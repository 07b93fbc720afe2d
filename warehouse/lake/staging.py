"""Many rows at once into Parquet files in the folders of both tables, before any commit.

They are counted once a hot batch that names them is stored: from then on every reader has them, and the loader puts
them into the tables' own logs. What is never named, because its writer was killed, a vacuum finds and removes.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse import disk
from warehouse.errors import StagedTooLong
from warehouse.lake import delta_table
from warehouse.schema import DAILY_VIEWS

_STATISTICS = {"hits": ["project_id", "path", "ts"], "daily_views": ["project_id", "path", "date"]}
"""Those of the order of a file: no query skips row groups by another, and they cost a third of the writing."""

_ENCODINGS = {"ts": "DELTA_BINARY_PACKED"}
"""Of columns that a dictionary would only make larger: so `hits` is a sixth smaller, and sooner written."""

_WRITTEN_AT_ONCE = 65_536
"""Values of a column: fewer take longer."""

THREADS = 2
"""That write at once."""

NUMBER_BITS = 63
"""Of a number that stands for the values of several columns."""

_COUNTED_BITS = 12
"""By so many bits numbers are sorted at once."""


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

    def files(self, spec: delta_table.Spec, folder: Path) -> tuple[delta_table.File, ...]:
        """Those of a table, as its folder has them."""
        staged = self.hits if spec is delta_table.HITS_TABLE else self.daily_views
        return tuple(
            delta_table.File(str(folder / file.path), file.partition, file.bytes, file.rows) for file in staged
        )


def stage(root: Path, rows: pa.Table) -> Staged:
    """Write rows of the columns of `schema.HOT`, texts dictionary-encoded or not, sorted; `sync` before naming them."""
    dated = _dated(rows)
    with ThreadPoolExecutor(THREADS, "stage") as pool:
        counted = pool.submit(_counted, dated)
        hits = pool.map(partial(_write, root, delta_table.HITS_TABLE), _parts(_sorted(dated), "date"))
        daily_views = pool.map(partial(_write, root, delta_table.DAILY_VIEWS_TABLE), _parts(counted.result(), "month"))
        return Staged(tuple(hits), tuple(daily_views))


def sync(root: Path, staged: Staged) -> None:
    """Wait until staged files are on the disk. Apart from writing them: who writes the next need not wait."""
    for spec in delta_table.TABLES:
        files = [Path(file.path) for file in staged.files(spec, root / spec.name)]
        for path in (*files, *{file.parent for file in files}, root / spec.name):  # each names those before it
            disk.sync(path)


def require_fresh(root: Path, staged: Staged) -> None:
    """Make sure, in the transaction that names staged files, that no vacuum takes them for forgotten ones.

    Raises:
        StagedTooLong: they were written so long ago that one may have, as when a process was suspended in between.
    """
    oldest_s = time.time() - delta_table.GRACE_H * 3600 / 2
    for spec in delta_table.TABLES:
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
    """In the order of a file, of each day."""
    order = _order(dated)
    columns = {name: _taken(dated[name].combine_chunks(), order) for name in dated.column_names}
    return pa.table(columns)


def _order(dated: pa.Table) -> pa.Array:
    """The places of the rows by day, project, path and time: stably by one after the other, the last first.

    A log mostly is in the order of time, and Arrow counts values that are few, which is soon done.
    """
    ts = dated["ts"].combine_chunks()
    is_in_time = not pc.any(pc.less(ts[1:], ts[:-1])).as_py()
    order = None if is_in_time else pc.array_sort_indices(ts)
    for key in (dated["path"].combine_chunks(), dated["project_id"].combine_chunks(), _days(dated)):
        by = pc.array_sort_indices(key.indices if order is None else key.indices.take(order))
        order = by if order is None else order.take(by)
    return order


def _taken(column: pa.Array, order: pa.Array) -> pa.Array:
    """Several columns of a log have one value in all rows, or none."""
    is_one = pa.types.is_dictionary(column.type) and len(column.dictionary) == 1 and column.null_count == 0
    return column if is_one or column.null_count == len(column) else column.take(order)


def _days(dated: pa.Table) -> pa.DictionaryArray:
    return _ordered(dated["date"].combine_chunks().dictionary_encode())


def _counted(dated: pa.Table) -> pa.Table:
    """Views of each day, project, path, traffic and agent, in the order of a file."""
    days = _days(dated)
    months = pc.strftime(days.dictionary, format="%Y-%m").dictionary_encode()
    columns = {
        "month": pa.DictionaryArray.from_arrays(months.indices.take(days.indices), months.dictionary),
        **{name: dated[name].combine_chunks() for name in ("project_id", "path")},
        "date": days,
        **{name: dated[name].combine_chunks() for name in ("traffic", "agent")},
    }
    codes = _runs(columns) if sum(map(_bits, columns.values())) <= NUMBER_BITS else _groups(columns)
    found = {
        name: pa.DictionaryArray.from_arrays(codes[name], column.dictionary) for name, column in columns.items()
    } | {"views": codes["views"]}
    found["date"] = found["date"].dictionary_decode()
    return pa.table({name: found[name] for name in DAILY_VIEWS.names})


def _runs(columns: dict[str, pa.DictionaryArray]) -> dict[str, pa.Array]:
    """The places of each distinct row's values in the columns' dictionaries, in their order, and how many rows it is.

    One number stands for all of these, and its order is theirs: several columns take several times as long.
    """
    bits = sum(map(_bits, columns.values()))
    runs = pc.run_end_encode(_ascending(_packed(list(columns.values())), bits), run_end_type=pa.int64())
    rest, found = runs.values, {"views": pc.pairwise_diff(runs.run_ends)}
    found["views"] = pc.fill_null(found["views"], runs.run_ends[0]) if len(runs.run_ends) else found["views"]
    for name in reversed(columns):
        bits = _bits(columns[name])
        found[name] = pc.subtract(pc.bit_wise_and(rest, _scalar((1 << bits) - 1)), _scalar(1)).cast(pa.int32())
        if columns[name].null_count:
            found[name] = pc.if_else(pc.less(found[name], _scalar(0)), pa.scalar(None, pa.int32()), found[name])
        rest = pc.shift_right(rest, _scalar(bits))
    return found


def _groups(columns: dict[str, pa.DictionaryArray]) -> dict[str, pa.Array]:
    """What `_runs` says, nulls last, of more values than a number tells apart: all the days of two centuries, say."""
    places = pa.table({name: column.indices for name, column in columns.items()})
    groups = places.group_by(list(columns)).aggregate([([], "count_all")]).rename_columns([*columns, "views"])
    ordered = groups.sort_by([(name, "ascending") for name in columns])
    return {name: ordered[name].combine_chunks() for name in ordered.column_names}


def _packed(columns: Sequence[pa.DictionaryArray]) -> pa.Array:
    """For each row a number of its places in these columns' dictionaries, from 1, 0 for null; the first is highest."""
    packed = _scalar(0)
    for column in columns:
        code = pc.add(column.indices.cast(pa.int64()), _scalar(1))
        packed = pc.add(pc.shift_left(packed, _scalar(_bits(column))), code.fill_null(0) if code.null_count else code)
    return packed


def _scalar(number: int) -> pa.Scalar:
    """Of the type that a number of Python's is taken for: Arrow looks for a package each time that it has to guess."""
    return pa.scalar(number, pa.int64())


def _bits(column: pa.DictionaryArray) -> int:
    return len(column.dictionary).bit_length()


def _ascending(numbers: pa.Array, bits: int) -> pa.Array:
    """Sorted by some of their bits after the other: few values are counted, in a fifth of the time comparing takes."""
    for shift in range(0, bits, _COUNTED_BITS):
        digits = pc.bit_wise_and(pc.shift_right(numbers, _scalar(shift)), _scalar((1 << _COUNTED_BITS) - 1))
        numbers = numbers.take(pc.array_sort_indices(digits))
    return numbers


def _parts(rows: pa.Table, column: str) -> Iterator[tuple[str, pa.Table]]:
    """The rows, which are in the order of `column`, by its values; without it, as Delta's files are."""
    values = rows[column].combine_chunks()
    is_encoded = pa.types.is_dictionary(values.type)
    runs = pc.run_end_encode(values.indices if is_encoded else values)
    distinct = values.dictionary.take(runs.values) if is_encoded else runs.values
    start = 0
    for value, end in zip(distinct.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield str(value), rows.slice(start, end - start).drop_columns([column])
        start = end


def _write(root: Path, spec: delta_table.Spec, part: tuple[str, pa.Table]) -> StagedFile:
    value, rows = part
    relative = f"{spec.partition}={value}/staged-{uuid.uuid4()}.parquet"
    file = root / spec.name / relative
    file.parent.mkdir(exist_ok=True)
    schema = pa.schema([field for field in spec.schema if field.name != spec.partition])
    columns = _compact(rows, schema)
    encoded = [field.name for field in columns.schema if field.name not in _ENCODINGS and field.type != pa.string()]
    pq.write_table(
        columns,
        file,
        compression="lz4",  # until compaction: zstd takes a sixth longer and saves as much
        write_batch_size=_WRITTEN_AT_ONCE,
        row_group_size=delta_table.ROW_GROUP_ROWS,
        write_statistics=_STATISTICS[spec.name],
        use_dictionary=encoded,
        column_encoding={name: _ENCODINGS[name] for name in schema.names if name in _ENCODINGS},
        store_schema=False,  # a reader finds texts, not the dictionaries that they were written from
    )
    return StagedFile(relative, value, file.stat().st_size, rows.num_rows)


def _compact(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a file, those that are never null said to be so. One whose dictionary has more texts than there
    are rows is without it: all of it would be in the file."""
    columns = {name: rows[name].combine_chunks() for name in schema.names}
    for name, column in columns.items():
        if pa.types.is_dictionary(column.type) and len(column.dictionary) > rows.num_rows // 2:
            columns[name] = column.cast(pa.string())
    fields = [pa.field(name, column.type, schema.field(name).nullable) for name, column in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
