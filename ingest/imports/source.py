"""A log as a stream of its content: unpacked by what its first bytes are, never by its name."""

import bz2
import gzip
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from glob import glob
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO

from ingest.errors import InvalidLog

STDIN = "-"
BLOCK_BYTES = 12 * 1024 * 1024
"""Read and parsed at once: less takes longer, since each block has much the same requests and times."""
LAST_LINE_BYTES = 64 * 1024
"""At the end of a block it is looked for a line end so far back before the block is read."""
HEAD_BYTES = 256 * 1024
HEAD_LINES = 100
MAGIC_BYTES = 6
COMPARED_BYTES = 256
"""So much of the beginning of a log and of what was read last tells whether a file is still that log."""


def _zstd(file: BinaryIO) -> Any:
    import pyarrow as pa  # noqa: PLC0415  # it has threads: see `processes`

    return pa.CompressedInputStream(file, compression="zstd")


_PACKED: Sequence[tuple[bytes, str, Callable[[Any], Any]]] = (
    (b"\x1f\x8b", "gzip", gzip.open),
    (b"BZh", "bzip2", bz2.open),
    (b"\xfd7zXZ\x00", "xz", lzma.open),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
)


class ReadFailed(OSError):
    """A read of a log that is open failed."""


@contextmanager
def _reading() -> Iterator[None]:
    """Raise ReadFailed for an error of the system, which a caller can tell from errors of what it writes."""
    try:
        yield
    except OSError as error:
        raise ReadFailed(error.errno, error.strerror) from None


class Content:
    """The unpacked bytes of one log, taken from the beginning to the end, as far as it has come."""

    def __init__(self, name: str, file: Any, packing: str) -> None:
        self.name = name
        self.taken = 0
        """Bytes that are gone from here."""
        self.first = b""
        """COMPARED_BYTES of them at most, from the beginning."""
        self._ends = ((0, b""), (0, b""))
        self._file = file
        self.packing = packing
        """How it is packed: the name of a format, or nothing."""
        self._ahead = b""
        self._is_ended = False

    def peek(self, size: int) -> bytes:
        """The next bytes, which stay: `size` of them, less only at the end."""
        if len(self._ahead) < size:
            pieces = [self._ahead, *self._pieces(size - len(self._ahead))]
            self._ahead = b"".join(filter(None, pieces))  # one alone is not copied
        return self._ahead if len(self._ahead) == size else self._ahead[:size]

    def take(self, size: int) -> bytes:
        """The next bytes, gone from here."""
        taken = self.peek(size)
        return self._taken(taken, self._ahead[len(taken) :])

    def _taken(self, taken: bytes, ahead: bytes) -> bytes:
        self._ahead = ahead
        self.first += taken[: COMPARED_BYTES - len(self.first)]
        last_line, last = self._ends
        end = taken.rfind(b"\n") + 1
        self._ends = (_grown(last, taken, end) if end else last_line, _grown(last, taken, len(taken)))
        self.taken += len(taken)
        return taken

    def before(self, offset: int) -> bytes:
        """COMPARED_BYTES at most before an offset, which is that of `taken` or of the last line end before it.

        As they were read: who reads the file for them may find that it was emptied meanwhile.
        """
        return dict(self._ends)[offset]

    def lines(self) -> bytes:
        """Whole lines of about BLOCK_BYTES; without a line end at the end of the log, or where a line is longer."""
        if whole := self._whole_lines():
            return self._taken(whole, b"")
        block = self.peek(BLOCK_BYTES)
        end = block.rfind(b"\n") + 1 if len(block) == BLOCK_BYTES else len(block)
        return self.take(end or len(block))

    def _whole_lines(self) -> bytes:
        """The same of a plain file, where its end is further, read at once to just where they end: to read more and cut
        it off copies all of it. Nothing of what else comes, where it changes meanwhile, or where it was read before."""
        if self.packing or self._is_ended or len(self._ahead) >= BLOCK_BYTES or not self._file.is_plain:
            return b""
        size = max(BLOCK_BYTES - LAST_LINE_BYTES, 0)
        last = self._file.at(self.taken + size, BLOCK_BYTES - size)
        if not (end := last.rfind(b"\n") + 1) or len(last) < BLOCK_BYTES - size:
            return b""
        whole: bytes = self._file.at(self.taken, size + end)
        if len(whole) < size + end or not whole.endswith(b"\n"):
            return b""
        self._file.go_on(self.taken + len(whole), len(whole) - len(self._ahead))
        return whole

    def head(self) -> list[bytes]:
        """The first lines, which stay."""
        block = self.peek(HEAD_BYTES)
        lines = block.split(b"\n")
        return (lines[:-1] if len(lines) > 1 else lines)[:HEAD_LINES]

    def _pieces(self, size: int) -> Iterator[bytes]:
        """What is read of the next so many bytes; nothing where they are none.

        What is added to a log once its end was seen is none of this: else the end may be inside of a line.
        """
        while size > 0 and not self._is_ended:
            piece = self._read(size)
            self._is_ended = not piece
            yield piece
            size -= len(piece)

    def _read(self, size: int) -> bytes:
        try:
            return bytes(self._file.read(size))
        except ReadFailed:
            raise
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, OSError) as error:
            if not self.packing:
                raise
            raise InvalidLog(f"{self.name} is not whole {self.packing} data: {error}") from None


def _grown(last: tuple[int, bytes], more: bytes, end: int) -> tuple[int, bytes]:
    """An offset and what is before it, `end` bytes on."""
    offset, before = last
    return offset + end, (before + more[max(0, end - COMPARED_BYTES) : end])[-COMPARED_BYTES:]


@contextmanager
def opened(name: str, on_bytes: Callable[[int], None] = lambda count: None) -> Iterator[Content]:
    """The content of a file, or of standard input for `-`; `on_bytes` is told of bytes read, packed as they are.

    Raises:
        OSError: it cannot be opened.
    Through `Content`:
        InvalidLog: what it unpacks to has no end, or is damaged.
    """
    with ExitStack() as stack:
        raw = sys.stdin.buffer if name == STDIN else stack.enter_context(Path(name).open("rb", buffering=0))
        yield unpacked(name, raw, on_bytes)


def unpacked(name: str, file: Any, on_bytes: Callable[[int], None] = lambda count: None) -> Content:
    """The content of a file that is open at its beginning."""
    counted = _Counted(file, on_bytes)
    packing, unpack = next(
        ((packing, unpack) for first, packing, unpack in _PACKED if counted.magic.startswith(first)),
        ("", lambda file: file),
    )
    return Content(name, unpack(counted), packing)


def matched(names: Sequence[str]) -> list[str]:
    """The files that are meant: patterns such as `logs/*.gz`, which no shell has seen, become the files they match."""
    files: list[str] = []
    for name in names:
        found = [] if name == STDIN or Path(name).exists() else sorted(glob(name, recursive=True))  # noqa: PTH207  # Path.glob takes no absolute pattern
        files += [file for file in found if not Path(file).is_dir()] or [name]
    return files


def try_each(files: Sequence[str]) -> None:
    """Each is opened once, but for pipes, which can be opened only once.

    Raises:
        OSError: one cannot be opened.
        InvalidLog: one is a folder.
    """
    for file in files:
        if Path(file).is_dir():
            raise InvalidLog(f"{file} is a folder: name the files in it, such as '{Path(file) / '*.log*'}'")
        if file != STDIN and not Path(file).is_fifo():
            Path(file).open("rb").close()


def is_stream(name: str) -> bool:
    """Whether it comes when its writer pleases, and may be silent for hours."""
    return name == STDIN or not Path(name).is_file()


def size(name: str) -> int | None:
    """Bytes of a file, packed as it is; None where that cannot be told."""
    path = Path(name)
    return path.stat().st_size if name != STDIN and path.is_file() else None


class _Counted:
    """A file that tells how much of it was read, and whose first bytes are looked at without being lost."""

    def __init__(self, file: Any, on_bytes: Callable[[int], None]) -> None:
        self._file = file
        self._on_bytes = on_bytes
        self.magic = b""
        with _reading():
            while len(self.magic) < MAGIC_BYTES and (piece := file.read(MAGIC_BYTES - len(self.magic))):
                self.magic += piece
        self._first = self.magic
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        first, self._first = self._first, b""
        if size >= 0 and first:
            first, self._first = first[:size], first[size:]
            data = first
        else:
            with _reading():
                data = first + (self._file.read(size) or b"")
        self._on_bytes(len(data))
        return data

    @property
    def is_plain(self) -> bool:
        """Whether it can be read from where one pleases, and from its beginning."""
        return isinstance(self._file, FileIO) and S_ISREG(os.fstat(self._file.fileno()).st_mode)

    def at(self, position: int, size: int) -> bytes:
        with _reading():
            return os.pread(self._file.fileno(), size, position)

    def go_on(self, position: int, count: int) -> None:
        """Read on from there; `count` more bytes were read before it."""
        self._file.seek(position)
        self._first = b""
        self._on_bytes(count)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
