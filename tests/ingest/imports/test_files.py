"""Files of an import: names and patterns, compression by content, and the size of each read."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from ingest.errors import InvalidLog
from ingest.imports import files
from ingest.imports.log_stream import ReadFailed

CONTENT = b"".join(b"line %d\n" % number for number in range(1_000))
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: bytes(pa.compress(content, "zstd", asbytes=True)),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_file_of_two_parts_is_decompressed_and_each_read_is_reported(tmp_path: Path, packing: str) -> None:
    file, counts = tmp_path / "access.log.gz", list[int]()
    file.write_bytes(PACKINGS[packing](CONTENT[:4_321]) + PACKINGS[packing](CONTENT[4_321:]))
    with files.open_source(str(file), counts.append) as source:
        assert (source.packing, source.take(len(CONTENT) + 1)) == (packing, CONTENT)
    assert sum(counts) == file.stat().st_size


@pytest.mark.parametrize("content", [b"", b"a", b"\x1f", b"\x1f\x8a plain", b"BZ"])
def test_file_shorter_than_or_unlike_a_magic_number_is_plain(content: bytes) -> None:
    source = files.unpack("log", io.BytesIO(content))
    assert (source.packing, source.take(100)) == ("", content)


def test_standard_input_and_pipes_are_read_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONTENT)))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(CONTENT)))
    writer.start()
    for name in ("-", str(pipe)):
        with files.open_source(name) as source:
            assert source.take(len(CONTENT) + 1) == CONTENT
        assert files.is_stream(name)
        assert files.size(name) is None
    writer.join()


def test_failed_read_differs_from_errors_of_what_the_import_writes() -> None:
    with open("/proc/self/mem", "rb", buffering=0) as unmapped, pytest.raises(ReadFailed):  # noqa: PTH123  # unbuffered
        files.unpack("log", unmapped)


def test_pattern_becomes_the_files_that_match_in_order(tmp_path: Path) -> None:
    for name in ("b.log", "a.log", "c[1].log", "sub"):
        (tmp_path / name).mkdir() if name == "sub" else (tmp_path / name).write_bytes(b"12")
    (tmp_path / "sub" / "d.log").write_bytes(b"12")
    (tmp_path / "folder.log").mkdir()

    def expand(*names: str) -> list[str]:
        expanded = files.expand([name if name == "-" else str(tmp_path / name) for name in names])
        return [name.removeprefix(f"{tmp_path}/") for name in expanded]

    assert expand("*.log") == ["a.log", "b.log", "c[1].log"]
    assert expand("**/*.log") == ["a.log", "b.log", "c[1].log", "sub/d.log"]
    assert expand("c[1].log", "-", "missing*") == ["c[1].log", "-", "missing*"]
    assert files.size(str(tmp_path / "a.log")) == 2


def test_unreadable_files_are_reported_before_any_is_read(tmp_path: Path) -> None:
    file, pipe = tmp_path / "log", tmp_path / "pipe"
    file.write_bytes(b"")
    os.mkfifo(pipe)
    files.require_readable([str(file), str(pipe), "-"])
    with pytest.raises(FileNotFoundError):
        files.require_readable([str(file), str(tmp_path / "missing")])
    with pytest.raises(InvalidLog, match=r"is a folder: name the files in it, such as '.*/\*\.log\*'"):
        files.require_readable([str(tmp_path)])
