"""Tables in each format: equal rows, cells that no spreadsheet computes, and constant memory."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from api.http.operation import CSV, NDJSON, PARQUET
from api.reports.formats import BATCH_ROWS, FORMATS, rebatched
from tests.warehouse.site import ROOT

SCHEMA = pa.schema([("value", pa.string()), ("total", pa.int64())])
ROWS = [{"value": "Firefox", "total": 3}, {"value": "", "total": 2}, {"value": 'a,"b"\n', "total": 1}]
PEAK = """
import itertools, resource, sys
import pyarrow as pa
from api.reports.formats import FORMATS

media_type, batches = sys.argv[1], int(sys.argv[2])
values = [f"/docs/section-{number % 97}/page-{number}" for number in range(10_000)]
batch = pa.record_batch({"path": values, "total": list(range(10_000))})
rows = itertools.repeat(batch, batches)
assert sum(map(len, FORMATS[media_type].chunks(batch.schema, rows))) > 10_000 * batches
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
"""Program that writes batches of 10,000 rows in a format, and prints its peak memory in MiB."""


def batch(*rows: dict[str, object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), SCHEMA)


def written(media_type: str, *batches: pa.RecordBatch) -> bytes:
    return b"".join(FORMATS[media_type].chunks(SCHEMA, batches))


def test_csv_has_a_header_and_crlf_lines() -> None:
    text = written(CSV, batch(*ROWS[:1]), batch(*ROWS[1:]))
    assert text == b'value,total\r\nFirefox,3\r\n,2\r\n"a,""b""\n",1\r\n'


def test_ndjson_has_a_line_for_each_row() -> None:
    text = written(NDJSON, batch(*ROWS[:2]), batch({"value": None, "total": 0}))
    assert text == b'{"value":"Firefox","total":3}\n{"value":"","total":2}\n{"value":null,"total":0}\n'


def test_parquet_has_a_row_group_for_each_batch() -> None:
    content = written(PARQUET, batch(*ROWS[:2]), batch(*ROWS[2:]))
    file = pq.ParquetFile(io.BytesIO(content))
    assert (file.schema_arrow, file.num_row_groups) == (SCHEMA, 2)
    assert file.read().to_pylist() == ROWS


def test_formats_have_equal_rows() -> None:
    rows = [*ROWS, {"value": "é", "total": 2**62}]
    from_csv = csv.DictReader(io.StringIO(written(CSV, batch(*rows)).decode(), newline=""))
    assert [{"value": row["value"], "total": int(row["total"])} for row in from_csv] == rows
    assert [json.loads(line) for line in written(NDJSON, batch(*rows)).splitlines()] == rows
    assert pq.read_table(io.BytesIO(written(PARQUET, batch(*rows)))).to_pylist() == rows


@pytest.mark.parametrize("media_type", FORMATS)
def test_table_without_rows_is_a_valid_file(media_type: str) -> None:
    content = written(media_type)
    assert content == {CSV: b"value,total\r\n", NDJSON: b""}.get(media_type, content)
    if media_type == PARQUET:
        assert pq.read_table(io.BytesIO(content)).schema == SCHEMA


def test_csv_shields_a_text_that_a_spreadsheet_would_compute_and_no_other() -> None:
    def of_csv(text: str) -> str:
        (row,) = csv.DictReader(io.StringIO(written(CSV, batch({"value": text, "total": 1})).decode(), newline=""))
        return row["value"]

    for first in ("=", "+", "-", "@", "\t", "\r"):
        formula = f'{first}HYPERLINK("https://example.com")'
        assert of_csv(formula) == f"'{formula}"
        lines = written(NDJSON, batch({"value": formula, "total": 1}))
        assert json.loads(lines)["value"] == formula
        file = pq.read_table(io.BytesIO(written(PARQUET, batch({"value": formula, "total": 1}))))
        assert file["value"].to_pylist() == [formula]
    for text in ("/a=b", "a+b", " =1+1", "'=1", "/-", "1-1", "a\n=1", ""):
        assert of_csv(text) == text
    assert written(CSV, batch({"value": "a", "total": -1})) == b"value,total\r\na,-1\r\n"


@pytest.mark.parametrize("media_type", FORMATS)
def test_chunk_is_written_before_the_next_batch_is_read(media_type: str) -> None:
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield batch(*ROWS)

    sizes = []
    for chunk in FORMATS[media_type].chunks(SCHEMA, batches()):
        sizes.append(len(chunk))
        assert read <= len(sizes)
    assert min(sizes[:100]) > 0


@pytest.mark.parametrize("sizes", [[], [0], [1], [9_999, 2], [BATCH_ROWS], [0, 25_000, 5_000, 0], [30] * 400])
def test_batches_are_of_one_size_however_the_rows_arrive(sizes: list[int]) -> None:
    numbers = pa.array(range(sum(sizes)), pa.int64())
    rows = pa.table({"other": numbers, "total": numbers, "value": numbers.cast(pa.string())})
    sliced = (rows.slice(sum(sizes[:i]), size).combine_chunks().to_batches() for i, size in enumerate(sizes))
    batches = list(rebatched(SCHEMA, (batch for batches in sliced for batch in batches)))
    whole, rest = divmod(sum(sizes), BATCH_ROWS)
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS] * whole + [rest] * bool(rest)
    assert pa.Table.from_batches(batches, SCHEMA).equals(rows.select(SCHEMA.names))
    for media_type, form in FORMATS.items():
        one = rebatched(SCHEMA, rows.to_batches())
        assert written(media_type, *batches) == b"".join(form.chunks(SCHEMA, one))


@pytest.mark.night
@pytest.mark.parametrize("media_type", FORMATS)
def test_memory_does_not_grow_with_the_number_of_rows(media_type: str) -> None:
    peaks = []
    for batches in (1, 30):
        command = [sys.executable, "-c", PEAK, media_type, str(batches)]
        peaks.append(int(subprocess.check_output(command, cwd=ROOT, text=True)))
    assert peaks[1] - peaks[0] < 16, peaks  # 30 batches are 21 MB of NDJSON
