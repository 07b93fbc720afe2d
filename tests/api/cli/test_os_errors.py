"""Errors of the operating system are printed as os_error_messages."""

import errno
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from api.cli.main import os_error_message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        (tmp_path / "log").read_bytes()
    assert os_error_message(raised.value) == f"there is no file {tmp_path}/log"


def test_a_full_disk_is_named_without_a_path() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(OSError, match="No space") as raised:
        full.write(b"x")
    assert os_error_message(raised.value) == "the disk is full"


def test_any_other_error_is_named_with_its_path() -> None:
    error = OSError(errno.ELOOP, os.strerror(errno.ELOOP), "/a/loop")
    assert os_error_message(error) == "/a/loop: Too many levels of symbolic links"


def test_an_error_without_a_number_is_printed_as_it_is() -> None:
    assert os_error_message(OSError("Not a gzipped file")) == "Not a gzipped file"


def test_an_error_of_arrow_has_no_number(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError) as raised:
        pq.ParquetFile(str(tmp_path / "folder" / "missing" / "x"))
    assert "rrno" not in os_error_message(raised.value)
    assert "missing" in os_error_message(raised.value)
