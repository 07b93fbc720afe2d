"""Followed logs: the lines that are added to a log are stored within two seconds, through rotation by renaming and by
copytruncate."""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from glob import escape, glob
from io import FileIO
from pathlib import Path

from ingest.errors import InvalidLog, LogReadElsewhere, UnknownFormat
from ingest.formats import detect
from ingest.formats.detect import Format
from ingest.hotlog import ledger_store
from ingest.imports import files
from ingest.imports.chunk import Block
from ingest.imports.importer import JUDGED_LINES_MIN, Import, LogReader, import_source
from ingest.imports.source import BLOCK_BYTES, COMPARED_BYTES, HEAD_BYTES, HEAD_LINES, ReadFailed, Source

POLL_S = 0.5
ROTATED_POLLS = 10
"""Number of polls without a new line after which a renamed file is closed. Its writer may go on writing to it until a
signal makes the writer open the new file."""

Notify = Callable[[str], None]
Wait = Callable[[float], bool]
"""Function that waits for up to a number of seconds, and returns whether to stop following."""


class UnreadableLog(Exception):
    """A log cannot be read at this moment; the message is the operating system's reason."""


class Stopped(Exception):
    """`wait` stopped the following while a log was read for the first time. The next `follow` reads the rest."""


def follow(run: Import, names: Sequence[str], wait: Wait, notify: Notify = lambda message: None) -> None:
    """Read each log to its end, and then the lines that are added, until `wait` returns True.

    A file need not exist yet, and may disappear for a while. A file that cannot be read is retried at each poll while
    the others are followed; `run.summary.unreadable` has the files whose last poll failed.

    Raises:
        InvalidLog: a file is compressed, or most of its lines are malformed when it is first read.
        UnknownFormat, InvalidFormat: see `ingest.formats.detect`.
        HotLogBehind, LakeBusy: see `warehouse.maintenance.load.load`.
    Errors of `Import.check` are raised too.
    """
    ledger_store.prepare(run.hot, run.secret, run.now)
    tails = [Tail(run, name, wait, notify) for name in files.expand(names)]
    try:
        while not wait(0):
            if sum([tail.read() for tail in tails]) == 0 and wait(POLL_S):
                return
    except Stopped:
        return
    finally:
        for tail in tails:
            tail.close()
        run.summary.unreadable.update({tail.name: tail.fault for tail in tails if tail.fault is not None})


class Tail:
    """A followed log: its name, the open file that has the name, and the position up to which that file was read."""

    def __init__(self, run: Import, name: str, wait: Wait, notify: Notify) -> None:
        self._run = run
        self.name = name
        self._wait = wait
        self._notify = notify
        self._file: FileIO | None = None
        self._format: Format | None = None
        self._reader: LogReader | None = None
        self._head = self._last = b""
        """The first COMPARED_BYTES of the file, and the last that were read."""
        self._polls_since_rotation = 0
        self.fault: str | None = None
        """Reason why the log could not be read at the last poll; None if it could."""

    def read(self) -> bool:
        """Store the lines that were added since the last poll; return whether there were any.

        If the log cannot be read, report the reason, and return False.
        """
        try:
            is_read = self._poll()
        except UnreadableLog as error:
            self._set_fault(str(error))
            return False
        self._set_fault(None)
        return is_read

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._reader = None
        self._polls_since_rotation = 0

    def _set_fault(self, fault: str | None) -> None:
        """Report a reason once, because the log is read twice a second."""
        if fault is not None and fault != self.fault:
            self._notify(f"{self.name} cannot be read, and is retried: {fault}")
        elif fault is None and self.fault is not None:
            self._notify(f"{self.name} can be read again")
        self.fault = fault

    def _poll(self) -> bool:
        if self._file is None or self._reader is None:
            return self._open()
        try:
            is_read = self._read_added(self._file, self._reader, is_final=False)
            if self._file is None:
                return is_read
            is_replaced = self._is_replaced(self._file)
            if is_read or not is_replaced:
                self._polls_since_rotation = 0
                return is_read
            self._polls_since_rotation += 1
            if self._polls_since_rotation > ROTATED_POLLS:
                self._read_added(self._file, self._reader, is_final=True)
                self._notify(f"{self.name} was rotated")
                self.close()
        except LogReadElsewhere:
            self.close()
        return False

    def _open(self) -> bool:
        """Open the file that has the name now, and read it to its end if its first lines show its format."""
        try:
            file = FileIO(self.name)  # unbuffered, because a buffer may have bytes that were truncated since
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(error) from None
        self._file = file
        try:
            self._reader = self._import(files.unpack(self.name, file))
        except LogReadElsewhere:
            self._reader = None
        except ReadFailed as error:
            self.close()
            raise _unreadable(error) from None
        if self._reader is None:
            self.close()
            return False
        return True

    def _import(self, source: Source) -> LogReader | None:
        if source.packing:
            raise InvalidLog(f"{self.name} is compressed by {source.packing}: import it without --follow")
        judged_lines_min = JUDGED_LINES_MIN if self._format is None else math.inf
        format = self._format_of(source)
        if format is None:
            return None
        self._format = format
        reader = import_source(self._run, source, format, self._raise_if_stopped, judged_lines_min)
        self._head, self._last = source.first[: reader.offset], source.before(reader.offset)
        return reader

    def _raise_if_stopped(self, lines: int) -> None:
        if self._wait(0):
            raise Stopped

    def _format_of(self, source: Source) -> Format | None:
        """Return the format of the log; None if it has no whole line yet, or too few lines to detect a format.

        A log whose first lines are of no known format is read in the format of the file before it.
        """
        head = source.head()
        if b"\n" not in source.peek(HEAD_BYTES):
            return None
        if self._run.options.format:
            return detect.named(self._run.options.format, head)
        try:
            return detect.detect(head, self.name)
        except UnknownFormat:
            if self._format is not None:
                return detect.named(self._format.name, head)
            if len(head) >= HEAD_LINES:
                raise
            return None

    def _read_added(self, file: FileIO, reader: LogReader, is_final: bool) -> bool:
        """Store the lines that were added to the file; return whether there were any.

        If `is_final`, also store a last line without a line end.
        """
        try:
            added = _read_at(file, reader.offset, BLOCK_BYTES)
            is_truncated = self._is_truncated(file, reader)  # after the read, which may return bytes of a new log
        except UnreadableLog:
            self.close()  # the next poll opens the file again, and reads from where the ledger ends
            raise
        if is_truncated:
            self._notify(f"{self.name} was emptied")
            self.close()
            self._read_copy()
            return True
        lines = added if is_final or len(added) == BLOCK_BYTES else added[: added.rfind(b"\n") + 1]
        if not lines:
            return False
        is_last = is_final or b"\n" in lines
        chunk = reader.parse(Block(lines, reader.position.ends_mid_line, is_last, is_growing=not is_final))
        if not chunk.data:
            return False
        reader.store([chunk], judged_lines_min=math.inf)
        self._head += chunk.data[: COMPARED_BYTES - len(self._head)]
        self._last = (self._last + chunk.data[-COMPARED_BYTES:])[-COMPARED_BYTES:]
        return True

    def _read_copy(self) -> None:
        """Read the copy that copytruncate made: only the copy has the lines that were added after the last poll."""
        assert self._format is not None
        for name in sorted(glob(f"{escape(self.name)}?*")):  # noqa: PTH207  # as for names that are patterns
            with ExitStack() as stack:
                try:
                    source = stack.enter_context(files.open_source(name))
                    is_copy = source.peek(len(self._head)) == self._head
                except (IsADirectoryError, InvalidLog):
                    continue
                except OSError as error:
                    self._notify(f"{name} cannot be read: {error.strerror}; if it is a copy of {self.name}, import it")
                    continue
                if is_copy:
                    with suppress(InvalidLog, LogReadElsewhere):
                        import_source(self._run, source, self._format, lambda lines: None, math.inf)

    def _is_replaced(self, file: FileIO) -> bool:
        """Return whether another file has the name now."""
        try:
            return not os.path.samestat(Path(self.name).stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(error) from None

    def _is_truncated(self, file: FileIO, reader: LogReader) -> bool:
        """Return whether the bytes that were read last are gone, because the file was emptied and perhaps refilled."""
        return _read_at(file, reader.offset - len(self._last), len(self._last)) != self._last


def _read_at(file: FileIO, offset: int, size: int) -> bytes:
    try:
        file.seek(offset)
        return file.read(size)
    except OSError as error:
        raise _unreadable(error) from None


def _unreadable(error: OSError) -> UnreadableLog:
    return UnreadableLog(error.strerror or str(error))
