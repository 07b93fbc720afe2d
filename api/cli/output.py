"""The output of a command: tables on a terminal, JSON when piped."""

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
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
"""Minimum width of a column of a query's result, in characters, unless all its cells are narrower."""
LOCK_WAIT_S = 300.0
"""Timeout for the lock of the lake, in seconds."""
OUT = Console()
ERR = Console(stderr=True)
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) != "\n"}
_REPLACEMENTS = _PICTURES | dict.fromkeys(range(0x7F, 0xA0), "\ufffd")
"""Replacements of control characters: a terminal would obey them, and any client may send some in a user agent."""
_JSON = msgspec.json.Encoder(decimal_format="number", enc_hook=str)


def rows_option(*more: str, default: str = "table on a terminal, json when piped") -> Callable[[Any], Any]:
    """Return a decorator that adds the option --format to a command that prints rows, as the parameter `form`.

    `more` are the formats beside `table`, `json` and `ndjson`. `default` is for the help.
    """
    forms = click.Choice(("table", "json", "ndjson", *more))
    text = f"json is one array of rows, ndjson one line per row. [default: {default}]"
    return click.option("--format", "form", type=forms, help=text)


rows_format = rows_option()
"""Decorator of most commands that print rows: it adds the option --format."""


def chosen_form(form: str | None) -> str:
    """Return the format of a command's output: that of its option, else `table` on a terminal and `json` when piped."""
    return form or ("table" if sys.stdout.isatty() else "json")


def minute(instant_s: int | None) -> str:
    """Return a time, in seconds since 1970, for a cell of a table; empty for None."""
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y-%m-%d %H:%M") if instant_s else ""


def show(result: Any, text: Any, form: str | None = None) -> None:
    """Print `text` if the format is `table`, else `result` as one line of JSON. `text` may be a table of Rich."""
    show_rows([result], text, "ndjson" if chosen_form(form) == "json" else form)


def show_rows(rows: Sequence[Any], text: Any, form: str | None) -> None:
    """Print rows in the format of the option --format; `text` is printed as the `table`."""
    if chosen_form(form) == "table":
        OUT.print(text)
    else:
        write_json([rows], chosen_form(form))


def write_json(batches: Iterable[Iterable[Any]], form: str) -> None:
    """Write rows to standard output, batch by batch, as one array (`json`) or one line each (`ndjson`).

    The array has one line per row, too. Nothing is written before the first row is known.
    """
    is_array = form == "json"
    before, after = (b"[", b"") if is_array else (b"", b"\n")
    for batch in batches:
        for row in batch:
            sys.stdout.buffer.write(before + _JSON.encode(row) + after)
            before = b",\n" if is_array else b""
        sys.stdout.buffer.flush()
    if is_array:
        sys.stdout.buffer.write(b"[]\n" if before == b"[" else b"]\n")


def write(rows: pa.RecordBatchReader, form: str) -> None:
    """Write the rows of a query's result to standard output, in a format of `sql`.

    CSV begins with a header. A table needs all rows in memory; the other formats are written batch by batch.

    Raises:
        pa.ArrowException: the format cannot represent the type of a column, or a value.
        click.ClickException: two columns have the same name, and the format would lose one of them.
    """
    names = rows.schema.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and form in ("json", "ndjson", "parquet"):
        raise click.ClickException(f"two columns are named {twice}: rename one of them with AS")
    _WRITE[form](rows)


def _write_table(rows: pa.RecordBatchReader) -> None:
    whole = rows.read_all()
    OUT.print(result_table(_flat(whole), OUT.width) if whole.num_rows else "no rows")


def _json_rows(rows: pa.RecordBatchReader) -> Iterable[list[dict[str, Any]]]:
    return (_flat(_table(batch), _is_text_in_json).to_pylist() for batch in rows)


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


_WRITE: dict[str, Callable[[pa.RecordBatchReader], None]] = {
    "table": _write_table,
    "json": lambda rows: write_json(_json_rows(rows), "json"),
    "ndjson": lambda rows: write_json(_json_rows(rows), "ndjson"),
    "csv": _write_csv,
    "parquet": _write_parquet,
}


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def result_table(rows: pa.Table, width: int) -> Table:
    """Return a table with one line per row, or one line per value if a column would be narrower than READABLE_WIDTH."""
    names = [_escaped(name) for name in rows.column_names]
    cells = [[_cell(value) for value in column.to_pylist()] for column in rows.columns]
    widths = [max(map(cell_len, [name, *column])) for name, column in zip(names, cells, strict=True)]
    if sum(min(each, READABLE_WIDTH) + 3 for each in widths) < width:
        result = Table()
        for name, kind in zip(names, rows.schema.types, strict=True):
            result.add_column(name, justify="right" if _is_number(kind) else "left", overflow="fold")
        for row in zip(*cells, strict=True):
            result.add_row(*row)
    else:
        result = Table("", "", show_header=False)
        for row in zip(*cells, strict=True):
            for name, cell in zip(names, row, strict=True):
                result.add_row(name, cell)
            result.add_section()
    for column in result.columns:
        column.overflow = "fold"
    return result


def _cell(value: object) -> str:
    return "[dim]NULL[/dim]" if value is None else _escaped(value)


def _escaped(value: object) -> str:
    return escape(str(value).translate(_REPLACEMENTS))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text_in_csv(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or _is_text_in_json(kind))


def _is_text_in_json(kind: pa.DataType) -> bool:
    return bool(pa.types.is_interval(kind) or _has_nanoseconds(kind))


def _has_nanoseconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _flat(rows: pa.Table, is_text: Callable[[pa.DataType], bool] = _is_text_in_csv) -> pa.Table:
    """Convert the columns whose type `is_text` selects to text, and check that Python can represent all times."""
    for index, field in enumerate(rows.schema):
        column = rows.column(index)
        _refuse_far_times(field.name, column)
        if is_text(field.type):
            rows = rows.set_column(index, field.name, _texts(column))
    return rows


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if _has_nanoseconds(column.type):
        return column.cast(pa.string())
    text = _interval if pa.types.is_interval(column.type) else lambda value: _JSON.encode(value).decode()
    return pa.array([None if value is None else text(value) for value in column.to_pylist()], pa.string())


def _refuse_far_times(name: str, column: pa.ChunkedArray) -> None:
    """Raise ArrowInvalid for a time that Python cannot represent: Arrow's CSV writer would write a wrong one.

    Python has the years 1 to 9999 and no infinity; DuckDB has both.
    """
    kind = column.type
    if pa.types.is_nested(kind):
        convert = column.to_pylist
    elif pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and not _has_nanoseconds(kind)):
        convert = pc.min_max(column).as_py
    else:
        return
    try:
        convert()
    except (OverflowError, ValueError):
        raise pa.ArrowInvalid(f"a time in column {name} is outside the years 1 to 9999, or too fine") from None


def _interval(value: pa.MonthDayNano) -> str:
    """Format an interval as DuckDB does, with years as months: `1 months 2 days 3:04:05`."""
    parts = [f"{number} {unit}" for number, unit in ((value.months, "months"), (value.days, "days")) if number]
    seconds = timedelta(microseconds=value.nanoseconds // 1000)
    return " ".join([*parts, str(seconds)] if seconds or not parts else parts)


def table(columns: Iterable[str], rows: Iterable[Iterable[object]], title: str | None = None) -> Table:
    """Return a table; columns of integers are aligned to the right."""
    result = Table(title=None if title is None else _escaped(title), title_justify="left")
    listed = [tuple(row) for row in rows]
    for index, column in enumerate(columns):
        numbers = listed and all(isinstance(row[index], int) for row in listed)
        result.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in listed:
        result.add_row(*(f"{cell:,}" if isinstance(cell, int) else _escaped(cell) for cell in row))
    return result
