"""Rows of statements as a Parquet file, in row groups of limited size."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.lake import row_groups

BATCH_ROWS = 8_192
"""Number of rows that DuckDB converts at a time. The longest paths take 17 MB."""


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
