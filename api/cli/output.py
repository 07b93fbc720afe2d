"""What the command line prints: pleasant on a terminal, JSON when piped."""

import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import click
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

READABLE_WIDTH = 16
"""Characters that a column of an answer keeps at least, unless it needs fewer."""
OUT = Console()
ERR = Console(stderr=True)
_SHOWN = {code: chr(0x2400 + code) for code in range(32) if chr(code) != "\n"} | dict.fromkeys(
    range(0x7F, 0xA0), "\ufffd"
)
"""A terminal obeys control characters, and anybody may send some in a user agent: their pictures instead."""
_JSON = msgspec.json.Encoder(decimal_format="number", enc_hook=str)


def show(result: Any, shown: Any) -> None:
    """Print `shown` on a terminal, else `result` as one line of JSON."""
    if sys.stdout.isatty():
        OUT.print(shown)
    else:
        click.echo(msgspec.json.encode(result))


def write(rows: pa.RecordBatchReader, form: str) -> None:
    """Rows to standard output, in one of FORMS: JSON is an object a line, CSV has a header line.

    Only a table is made of all rows at once; the other forms are written as the rows come.

    Raises:
        pa.ArrowException: the form cannot hold a column's type or one of its values.
        click.ClickException: two columns have one name, and the form would lose one.
    """
    if form in ("json", "parquet"):
        _refuse_twins(rows.schema.names)
    _WRITE[form](rows)


def _write_table(rows: pa.RecordBatchReader) -> None:
    whole = rows.read_all()
    OUT.print(answer_table(_flat(whole), OUT.width) if whole.num_rows else "no rows")


def _write_json(rows: pa.RecordBatchReader) -> None:
    for batch in rows:
        lines = map(_JSON.encode, _flat(_table(batch), _is_no_json).to_pylist())
        sys.stdout.buffer.writelines(line + b"\n" for line in lines)


def _write_csv(rows: pa.RecordBatchReader) -> None:
    header = _flat(rows.schema.empty_table())
    with pa_csv.CSVWriter(sys.stdout.buffer, header.schema) as writer:
        for batch in rows:
            writer.write_table(_flat(_table(batch)))


def _write_parquet(rows: pa.RecordBatchReader) -> None:
    out = pa.PythonFile(sys.stdout.buffer, "w")
    with pq.ParquetWriter(out, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


_WRITE = {"table": _write_table, "csv": _write_csv, "json": _write_json, "parquet": _write_parquet}
FORMS = tuple(_WRITE)


def _refuse_twins(names: list[str]) -> None:
    twin = next((name for name in names if names.count(name) > 1), None)
    if twin is not None:
        raise click.ClickException(f"two columns are named {twin}: name one of them otherwise, with AS")


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def answer_table(rows: pa.Table, width: int) -> Table:
    """A row a line; where that leaves a column too narrow to read, a row a block with a column a line."""
    names = [_shown(name) for name in rows.column_names]
    cells = [[_cell(value) for value in column.to_pylist()] for column in rows.columns]
    widths = [max(map(cell_len, [name, *column])) for name, column in zip(names, cells, strict=True)]
    if sum(min(each, READABLE_WIDTH) + 3 for each in widths) < width:
        made = Table()
        for name, kind in zip(names, rows.schema.types, strict=True):
            made.add_column(name, justify="right" if _is_number(kind) else "left", overflow="fold")
        for row in zip(*cells, strict=True):
            made.add_row(*row)
    else:
        made = Table("", "", show_header=False)
        for row in zip(*cells, strict=True):
            for name, cell in zip(names, row, strict=True):
                made.add_row(name, cell)
            made.add_section()
    for column in made.columns:
        column.overflow = "fold"
    return made


def _cell(value: object) -> str:
    return "[dim]NULL[/dim]" if value is None else _shown(value)


def _shown(value: object) -> str:
    return escape(str(value).translate(_SHOWN))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_not_flat(kind: pa.DataType) -> bool:
    """Whether neither a cell nor a field of CSV can hold it."""
    return bool(pa.types.is_nested(kind) or _is_no_json(kind))


def _is_no_json(kind: pa.DataType) -> bool:
    return bool(pa.types.is_interval(kind) or _is_finer_than_python(kind))


def _is_finer_than_python(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _flat(rows: pa.Table, is_text: Callable[[pa.DataType], bool] = _is_not_flat) -> pa.Table:
    """The columns of such types as text, once it is sure that Python has all values."""
    for index, field in enumerate(rows.schema):
        column = rows.column(index)
        _refuse_far_times(field.name, column)
        if is_text(field.type):
            rows = rows.set_column(index, field.name, _texts(column))
    return rows


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if _is_finer_than_python(column.type):
        return column.cast(pa.string())
    text = _interval if pa.types.is_interval(column.type) else _nested
    return pa.array([None if value is None else text(value) for value in column.to_pylist()], pa.string())


def _refuse_far_times(name: str, column: pa.ChunkedArray) -> None:
    """Python knows the years 1 to 9999 and no infinity; DuckDB has more, and CSV would tell them wrong."""
    kind = column.type
    if pa.types.is_nested(kind):
        told = column.to_pylist
    elif pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and not _is_finer_than_python(kind)):
        told = pc.min_max(column).as_py
    else:
        return
    try:
        told()
    except (OverflowError, ValueError):
        raise pa.ArrowInvalid(f"a time in column {name} is outside the years 1 to 9999, or too fine") from None


def _nested(value: object) -> str:
    return _JSON.encode(value).decode()


def _interval(value: pa.MonthDayNano) -> str:
    """As DuckDB writes it, but for years: `1 months 2 days 3:04:05`."""
    named = [f"{number} {unit}" for number, unit in ((value.months, "months"), (value.days, "days")) if number]
    seconds = timedelta(microseconds=value.nanoseconds // 1000)
    return " ".join([*named, str(seconds)] if seconds or not named else named)


def table(columns: Iterable[str], rows: Iterable[Iterable[object]], title: str | None = None) -> Table:
    """A table whose columns of numbers are aligned to the right."""
    made = Table(title=title, title_justify="left")
    listed = [tuple(row) for row in rows]
    for index, column in enumerate(columns):
        numbers = listed and all(isinstance(row[index], int) for row in listed)
        made.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in listed:
        made.add_row(*(f"{cell:,}" if isinstance(cell, int) else _shown(cell) for cell in row))
    return made
