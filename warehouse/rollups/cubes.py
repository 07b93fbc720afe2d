"""Cubes of a rollup: the SQL of their rows, and the Parquet files to which these are written.

A cube has the page views of a month by day and by the columns of the cube.

A row of the day 0 has the sum of the days of its month. These rows come first. Within them, and within the rows of
days, the order is by the columns of the cube: readers before days, which takes a third less space than days first.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.columns import evidence, visits
from warehouse.columns.dimensions import BY_NAME, VISITORS, Cube, each_measure
from warehouse.lake import row_groups
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.query import engine
from warehouse.rollups.catalog import Part
from warehouse.tables import ASSET_LOADS_TABLE, EVENTS_TABLE, HITS_TABLE, Spec

BATCH_ROWS = 8_192
"""Number of rows that DuckDB converts at a time. The longest paths take 17 MB."""
VISITOR_ROWS = 100_000
"""Number of rows of `hits` whose visitors DuckDB counts at a time, or twice as many: 836,000 need more than 256 MB."""


Beside = Mapping[Spec, Sequence[File]]
"""Files of VISITOR_TABLES."""
NOTHING: Beside = {}


def find_evidence(files: Sequence[File], beside: Beside) -> Iterator[str]:
    """Yield the SELECTs of the evidence of the visitors in files of whole days: see `evidence.of_visitors`."""
    for of_days in _by_days(files):
        loaded = of_table(ASSET_LOADS_TABLE, of_days, beside) or engine.no_rows(ASSET_LOADS_TABLE)
        for share in _shares(of_days):
            yield evidence.of_visitors(engine.rows(HITS_TABLE, of_days), loaded, share)


def of_table(spec: Spec, files: Sequence[File], beside: Beside) -> str | None:
    """Return the relation of a table's rows, one of VISITOR_TABLES, on the days of `files`; None if it has no files."""
    days = {file.partition for file in files}
    of_days = [file for file in beside.get(spec, ()) if file.partition in days]
    return engine.rows(spec, of_days) if of_days else None


def count(cube: Cube, files: Sequence[File], beside: Beside, found: Path) -> Iterator[str]:
    """Yield the SELECTs of the counts of files of whole days: each page view, or visitors and visits.

    The file `found` has the evidence of visitors.
    """
    for of_days in _by_days(files):
        first, last = of_days[0].partition, of_days[-1].partition
        hits = engine.rows(HITS_TABLE, of_days)
        of_visitors = f"FROM {parquet(found)} WHERE date BETWEEN '{first}' AND '{last}'"
        if cube is VISITORS:
            events = of_table(EVENTS_TABLE, of_days, beside)
            for share in _shares(of_days):
                yield visits.of_rollup(hits, share, evidence.joined(hits, f"({of_visitors} AND {share})"), events)
        else:
            values = ", ".join(f"{BY_NAME[name].sql} AS {name}" for name in cube.columns)
            numbers, evident = each_measure("({sql})::UINTEGER AS {name}"), evidence.joined(hits, f"({of_visitors})")
            yield f"SELECT project_id, day(date)::UTINYINT AS day_of_month, {values}, {numbers} FROM {evident}"


def _by_days(files: Sequence[File]) -> Iterator[list[File]]:
    """Yield files in groups of whole days, of about VISITOR_ROWS or of one day."""
    ordered = sorted(files, key=lambda file: file.partition)
    ends, rows = dict[str, int](), 0
    for file in ordered:
        ends[file.partition] = rows = rows + file.rows
    for _, group in groupby(ordered, lambda file: ends[file.partition] // VISITOR_ROWS):
        yield [*group]


def _shares(files: Sequence[File]) -> Iterator[str]:
    """Yield the conditions of parts of the visitors of files, with at most 2 VISITOR_ROWS rows each."""
    shares = 1 + sum(file.rows for file in files) // (2 * VISITOR_ROWS)
    return (f"visitor % {shares} IN ({share}, {-share})" for share in range(shares))


def copy(cube: Cube, part: Part, days: Collection[str]) -> str:
    """Return the SELECT of the counts of days of a rollup."""
    numbers = ", ".join(str(int(day[-2:])) for day in sorted(days))
    return (
        f"SELECT project_id, day_of_month, {', '.join(cube.columns)}, {each_measure('{name}', cube.measures)} "
        f"FROM {parquet(part.rollup.folder / cube.file)} WHERE day_of_month IN ({numbers})"
    )


def add_up(cube: Cube, cells: str, day: str = "day_of_month") -> str:
    """Return the SELECT of the sums of cells of a relation. `day` is the expression of their day of the month."""
    key = ", ".join(("project_id", f"{day} AS day_of_month", *cube.columns))
    return f"SELECT {key}, {each_measure('sum({name})::UINTEGER AS {name}', cube.measures)} FROM {cells} GROUP BY ALL"


def in_order(cube: Cube, cells: str) -> str:
    """Return the SELECT of the cells of a relation in the cube's order."""
    return f"FROM {cells} ORDER BY {', '.join(('project_id', *cube.columns, 'day_of_month'))}"


def days(paths: Root | Path) -> str:
    """Return the relation of the rows of days in the file of a cube."""
    return f"(FROM {parquet(paths)} WHERE day_of_month > 0)"


def parquet(*paths: Root | Path | str) -> str:
    """Return the table function that reads files of a cube."""
    return f"read_parquet([{', '.join(engine.path_literal(str(path)) for path in paths)}], hive_partitioning = false)"


def write_rows(
    cursor: duckdb.DuckDBPyConnection, selects: Sequence[str], file: Path, group_rows: int = row_groups.ROWS_MAX
) -> Path:
    """Write the rows of SELECTs with the same columns to a file, one after the other, and return the file."""
    columns = cursor.sql(f"FROM ({selects[0]}) LIMIT 0").to_arrow_table().schema
    encoding = {name: "DELTA_BINARY_PACKED" for name in columns.names if name == "rank"}
    dictionary = [name for name in columns.names if name not in encoding]
    with pq.ParquetWriter(
        file, columns, compression="zstd", use_dictionary=dictionary, column_encoding=encoding
    ) as writer:
        for select in selects:
            rows = cursor.sql(select).to_arrow_reader(BATCH_ROWS).cast(columns)
            for group in row_groups.split(pa.Table.from_batches([batch]) for batch in rows):
                writer.write_table(group, group_rows)
    return file
