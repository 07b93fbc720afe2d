"""Followed logs: the lines that are added to a log are stored within two seconds, through rotation by renaming and by
copytruncate."""

import math
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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
from ingest.imports.log_stream import BLOCK_BYTES, COMPARED_BYTES, HEAD_BYTES, HEAD_LINES, LogStream, ReadFailed

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


@dataclass(slots=True, eq=False)
class _Opened:
    """An open file of a log, its reader, the first COMPARED_BYTES of the file, and the last bytes that were read."""

    file: FileIO
    reader: LogReader
    head: bytes
    last: bytes
    quiet_polls: int = 0
    """Number of polls without a new line since another file has the name of the log."""


class Tail:
    """A followed log: its name, the open file with the name, and open files that had it before the last rotations."""

    def __init__(self, run: Import, name: str, wait: Wait, notify: Notify) -> None:
        self._run = run
        self.name = name
        self._wait = wait
        self._notify = notify
        self._format: Format | None = None
        self._current: _Opened | None = None
        self._rotated: list[_Opened] = []
        self.fault: str | None = None
        """Reason why the log could not be read at the last poll; None if it could."""

    def read(self) -> bool:
        """Store the lines that were added since the last poll; return whether there were any.

        If the log cannot be read, report the reason, and return False.
        """
        try:
            reads = [self._read_rotated(opened) for opened in tuple(self._rotated)]
            is_read = self._poll() or any(reads)
        except UnreadableLog as error:
            self._set_fault(str(error))
            return False
        self._set_fault(None)
        return is_read

    def close(self) -> None:
        for opened in (*self._rotated, *filter(None, [self._current])):
            self._close(opened)

    def _close(self, opened: _Opened) -> None:
        opened.file.close()
        if opened is self._current:
            self._current = None
        else:
            self._rotated.remove(opened)

    def _set_fault(self, fault: str | None) -> None:
        """Report a reason once, because the log is read twice a second."""
        if fault is not None and fault != self.fault:
            self._notify(f"{self.name} cannot be read, and is retried: {fault}")
        elif fault is None and self.fault is not None:
            self._notify(f"{self.name} can be read again")
        self.fault = fault

    def _read_rotated(self, opened: _Opened) -> bool:
        """Store the lines that were added to a renamed file, and close the file after ROTATED_POLLS without any."""
        if self._read_added(opened, is_final=False):
            opened.quiet_polls = 0
            return True
        opened.quiet_polls += 1
        if opened.quiet_polls > ROTATED_POLLS and opened in self._rotated:
            self._read_added(opened, is_final=True)
            self._notify(f"{self.name} was rotated")
            if opened in self._rotated:
                self._close(opened)
        return False

    def _poll(self) -> bool:
        """Store the lines that were added to the file that has the name, which is another one after a rotation."""
        opened = self._current
        if opened is None:
            return self._open()
        is_read = self._read_added(opened, is_final=False)
        if opened is self._current and self._is_replaced(opened.file):
            self._rotated.append(opened)
            self._current = None
            return self._open() or is_read
        return is_read

    def _open(self) -> bool:
        """Open the file that has the name now, and read it to its end if its first lines show its format."""
        try:
            file = FileIO(self.name)  # unbuffered, because a buffer may have bytes that were truncated since
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(error) from None
        try:
            self._current = self._import(file)
        except LogReadElsewhere:
            pass
        except ReadFailed as error:
            raise _unreadable(error) from None
        finally:
            if self._current is None:
                file.close()
        return self._current is not None

    def _import(self, file: FileIO) -> _Opened | None:
        source = files.unpack(self.name, file)
        if source.packing:
            raise InvalidLog(f"{self.name} is compressed by {source.packing}: import it without --follow")
        judged_lines_min = JUDGED_LINES_MIN if self._format is None else math.inf
        format = self._format_of(source)
        if format is None:
            return None
        self._format = format
        reader = import_source(self._run, source, format, self._raise_if_stopped, judged_lines_min)
        return _Opened(file, reader, source.first[: reader.offset], source.before(reader.offset))

    def _raise_if_stopped(self, lines: int) -> None:
        if self._wait(0):
            raise Stopped

    def _format_of(self, source: LogStream) -> Format | None:
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

    def _read_added(self, opened: _Opened, is_final: bool) -> bool:
        """Store the lines that were added to a file; return whether there were any.

        If `is_final`, also store a last line without a line end. Close the file if another import reads it.
        """
        reader = opened.reader
        try:
            added = _read_at(opened.file, reader.offset, BLOCK_BYTES)
            is_truncated = _is_truncated(opened)  # after the read, which may return bytes of a new log
        except UnreadableLog:
            self._close(opened)  # the next poll opens the file again, and reads from where the ledger ends
            raise
        if is_truncated:
            self._notify(f"{self.name} was emptied")
            self._close(opened)
            self._read_copy(opened.head)
            return True
        lines = added if is_final or len(added) == BLOCK_BYTES else added[: added.rfind(b"\n") + 1]
        if not lines:
            return False
        is_last = is_final or b"\n" in lines
        chunk = reader.parse(Block(lines, reader.position.ends_mid_line, is_last, is_growing=not is_final))
        if not chunk.data:
            return False
        try:
            reader.store([chunk], judged_lines_min=math.inf)
        except LogReadElsewhere:
            self._close(opened)
            return False
        opened.head += chunk.data[: COMPARED_BYTES - len(opened.head)]
        opened.last = (opened.last + chunk.data[-COMPARED_BYTES:])[-COMPARED_BYTES:]
        return True

    def _read_copy(self, head: bytes) -> None:
        """Read the copy that copytruncate made: only the copy has the lines that were added after the last poll."""
        for name in sorted(glob(f"{escape(self.name)}?*")):  # noqa: PTH207  # as for names that are patterns
            with ExitStack() as stack:
                try:
                    source = stack.enter_context(files.open_source(name))
                    is_copy = source.peek(len(head)) == head
                except IsADirectoryError:
                    continue
                except InvalidLog as error:
                    self._report_copy(str(error))
                    continue
                except OSError as error:
                    self._report_copy(f"{name} cannot be read: {error.strerror}")
                    continue
                if is_copy:
                    self._import_copy(source)

    def _import_copy(self, source: LogStream) -> None:
        assert self._format is not None
        try:
            import_source(self._run, source, self._format, lambda lines: None, math.inf)
        except LogReadElsewhere:
            return
        except InvalidLog as error:
            self._report_copy(str(error))
        except ReadFailed as error:
            self._report_copy(f"{source.name} cannot be read: {error.strerror}")

    def _report_copy(self, reason: str) -> None:
        self._notify(f"{reason}; if it is a copy of {self.name}, import it")

    def _is_replaced(self, file: FileIO) -> bool:
        """Return whether another file has the name now."""
        try:
            return not os.path.samestat(Path(self.name).stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(error) from None


def _is_truncated(opened: _Opened) -> bool:
    """Return whether the bytes that were read last are gone, because the file was emptied and perhaps refilled."""
    return _read_at(opened.file, opened.reader.offset - len(opened.last), len(opened.last)) != opened.last


def _read_at(file: FileIO, offset: int, size: int) -> bytes:
    try:
        file.seek(offset)
        return file.read(size)
    except OSError as error:
        raise _unreadable(error) from None


def _unreadable(error: OSError) -> UnreadableLog:
    return UnreadableLog(error.strerror or str(error))
