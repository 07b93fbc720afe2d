"""Opening of the files of an import: patterns, standard input, and decompression by the first bytes of the file."""

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from glob import glob
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

from ingest.errors import InvalidLog
from ingest.imports.log_stream import LogStream, ReadFailed

STDIN = "-"
MAGIC_BYTES = 6


def _zstd(file: BinaryIO) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # the command line loads this module, and Arrow takes 0.1 s to import

    return pa.CompressedInputStream(file, compression="zstd")


_PACKINGS: Sequence[tuple[bytes, str, Callable[[Any], Any]]] = (
    (b"\x1f\x8b", "gzip", gzip.open),
    (b"BZh", "bzip2", bz2.open),
    (b"\xfd7zXZ\x00", "xz", lzma.open),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
)


@contextmanager
def open_source(name: str, on_bytes: Callable[[int], None] = lambda count: None) -> Iterator[LogStream]:
    """Open a file, or standard input for `-`, and close it in the end.

    `on_bytes` is called with the number of bytes of each read, before decompression.

    Raises:
        OSError: the file cannot be opened.
    Reading the source raises:
        InvalidLog: the compressed data is truncated or damaged.
    """
    with ExitStack() as stack:
        raw = sys.stdin.buffer if name == STDIN else stack.enter_context(Path(name).open("rb", buffering=0))
        yield unpack(name, raw, on_bytes)


def unpack(name: str, file: Any, on_bytes: Callable[[int], None] = lambda count: None) -> LogStream:
    """Return the source of a file that is open at its beginning."""
    counted = _CountedFile(file, on_bytes)
    for magic, packing, open_packed in _PACKINGS:
        if counted.magic.startswith(magic):
            return LogStream(name, open_packed(counted), packing)
    return LogStream(name, counted, "")


def expand(names: Sequence[str]) -> list[str]:
    """Return the names of the files; a pattern such as `logs/*.gz` becomes the files that it matches."""
    files: list[str] = []
    for name in names:
        matches = [] if name == STDIN or Path(name).exists() else sorted(glob(name, recursive=True))  # noqa: PTH207  # Path.glob takes no absolute pattern
        files += [file for file in matches if not Path(file).is_dir()] or [name]
    return files


def require_readable(files: Sequence[str]) -> None:
    """Open and close each file, except pipes, which can be opened only once.

    Raises:
        OSError: a file cannot be opened.
        InvalidLog: a file is a folder.
    """
    for file in files:
        if Path(file).is_dir():
            raise InvalidLog(f"{file} is a folder: name the files in it, such as '{Path(file) / '*.log*'}'")
        if file != STDIN and not Path(file).is_fifo():
            Path(file).open("rb").close()


def is_stream(name: str) -> bool:
    """Return whether a log is standard input or a pipe, which may deliver nothing for hours."""
    return name == STDIN or not Path(name).is_file()


def size(name: str) -> int | None:
    """Return the size of a file in bytes, without decompression; None for a stream."""
    return None if is_stream(name) else Path(name).stat().st_size


@contextmanager
def _read_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReadFailed(error.errno, error.strerror) from None


class _CountedFile:
    """A file that reports the size of each read, and whose first MAGIC_BYTES are known before the first read."""

    def __init__(self, file: Any, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes
        self.magic = b""
        while len(self.magic) < MAGIC_BYTES and (piece := self._read(MAGIC_BYTES - len(self.magic))):
            self.magic += piece
        self._first = self.magic
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        first, self._first = self._first, b""
        if size >= 0 and first:
            data, self._first = first[:size], first[size:]
        else:
            data = first + self._read(size)
        self._on_bytes(len(data))
        return data

    @property
    def size(self) -> int:
        """Return the size of a regular file in bytes; 0 for any other file."""
        status = os.fstat(self._file.fileno()) if isinstance(self._file, FileIO) else None
        return status.st_size if status is not None and S_ISREG(status.st_mode) else 0

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes of a regular file without moving its position, and without reporting them."""
        with _read_errors():
            return os.pread(self._file.fileno(), size, offset)

    def continue_at(self, offset: int, count: int) -> None:
        """Move to an offset, and report `count` bytes before it as read."""
        self._file.seek(offset)
        self._first = b""
        self._on_bytes(count)

    def _read(self, size: int) -> bytes:
        with _read_errors():
            return self._file.read(size) or b""

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
