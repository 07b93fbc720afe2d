"""Logs that grow: what is added is stored within a second or two, through rotation by renaming or by copytruncate."""

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
from ingest.imports import ledger, source
from ingest.imports.chunk import Block
from ingest.imports.importer import JUDGED_LINES_MIN, End, Import, import_content
from ingest.imports.source import COMPARED_BYTES, Content

POLL_S = 0.5
ROTATED_POLLS = 10
"""A renamed file is given up after so many polls without a line: its writer goes on with it until it is told."""

Tell = Callable[[str], None]
IsOver = Callable[[float], bool]
"""Waits for as many seconds at most, and says whether to end."""


class UnreadableLog(Exception):
    """A log cannot be read at this moment; the message is the system's reason."""


class Stopped(Exception):
    """It is over while a log is first read: what is left of that is read next time."""


def follow(run: Import, files: Sequence[str], is_over: IsOver, tell: Tell = lambda text: None) -> None:
    """Read each log to its end, and then what is added, until `is_over`. A file may come later, or go for a while.

    A file that cannot be read is tried again at each poll, while the others are followed. Those that could not be read
    at the last poll are in `run.summary.unreadable`.

    Raises:
        InvalidLog: a file is packed, or most of its lines are malformed when it is first read.
        UnknownFormat, InvalidFormat: see `ingest.formats.detect`.
        HotLogBehind, LakeBusy: see `warehouse.maintenance.load.load`.
    Whatever `Import.check` raises.
    """
    ledger.create(run.hot)
    tails = [Tail(run, file, is_over, tell) for file in source.matched(files)]
    try:
        while not is_over(0):
            if sum([tail.read() for tail in tails]) == 0 and is_over(POLL_S):
                return
    except Stopped:
        return
    finally:
        for tail in tails:
            tail.close()
        run.summary.unreadable.update({tail.name: tail.fault for tail in tails if tail.fault is not None})


class Tail:
    """One log by its name: the file that has it now, and how far that was read."""

    def __init__(self, run: Import, name: str, is_over: IsOver, tell: Tell) -> None:
        self._run = run
        self.name = name
        self._is_over = is_over
        self._tell = tell
        self._file: FileIO | None = None
        self._format: Format | None = None
        self._end: End | None = None
        self._head = self._last = b""
        self._polls_since_rotation = 0
        self.fault: str | None = None
        """Why the log could not be read at the last poll; None if it could."""

    def read(self) -> bool:
        """Store what was added since the last poll; return whether there was anything.

        A log that cannot be read is reported, and tried again at the next poll.
        """
        try:
            is_read = self._read()
        except UnreadableLog as error:
            self._set_fault(str(error))
            return False
        self._set_fault(None)
        return is_read

    def _set_fault(self, fault: str | None) -> None:
        """Report each new reason once: the log is read twice a second."""
        if fault is not None and fault != self.fault:
            self._tell(f"{self.name} cannot be read, and is tried again: {fault}")
        elif fault is None and self.fault is not None:
            self._tell(f"{self.name} can be read again")
        self.fault = fault

    def _read(self) -> bool:
        if self._file is None or self._end is None:
            return self._open()
        try:
            is_read = self._read_on(self._file, self._end, is_over=False)
            if self._file is None:
                return is_read
            is_replaced = self._is_replaced(self._file)
            if is_read or not is_replaced:
                self._polls_since_rotation = 0
                return is_read
            self._polls_since_rotation += 1
            if self._polls_since_rotation > ROTATED_POLLS:
                self._read_on(self._file, self._end, is_over=True)
                self._tell(f"{self.name} was rotated")
                self.close()
        except LogReadElsewhere:
            self.close()
        return False

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._end = None
        self._polls_since_rotation = 0

    def _open(self) -> bool:
        """Begin with the file that has the name now, once its first lines tell its format."""
        try:
            file = FileIO(self.name)  # without a buffer, which would show what was emptied since
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(error) from None
        self._file = file
        try:
            self._end = self._import(file)
        except LogReadElsewhere:
            self._end = None
        except UnreadableLog:
            self.close()
            raise
        if self._end is None:
            self.close()
            return False
        return True

    def _import(self, file: FileIO) -> End | None:
        try:
            return self._import_content(source.unpacked(self.name, file))
        except source.ReadFailed as error:
            raise _unreadable(error) from None

    def _import_content(self, content: Content) -> End | None:
        if content.packing:
            raise InvalidLog(f"{self.name} is packed by {content.packing}: import it without --follow")
        judged_lines_min = JUDGED_LINES_MIN if self._format is None else math.inf
        format = self._format_of(content)
        if format is None:
            return None
        self._format = format
        end = import_content(self._run, content, format, self._go_on, judged_lines_min)
        self._head, self._last = content.first[: end.offset], content.before(end.offset)
        return end

    def _go_on(self, lines: int) -> None:
        if self._is_over(0):
            raise Stopped

    def _format_of(self, content: Content) -> Format | None:
        """None where the log has no whole line yet, or too few to tell. One that tells nothing goes on as before."""
        head = content.head()
        if b"\n" not in content.peek(source.HEAD_BYTES):
            return None
        if self._run.options.format:
            return detect.named(self._run.options.format, head)
        try:
            return detect.detect(head, self.name)
        except UnknownFormat:
            if self._format is not None:
                return detect.named(self._format.name, head)
            if len(head) >= source.HEAD_LINES:
                raise
            return None

    def _read_on(self, file: FileIO, end: End, is_over: bool) -> bool:
        """Read what was added to the file; also a last line without an end once it `is_over`."""
        assert self._format is not None
        try:
            more = _read_at(file, end.offset, source.BLOCK_BYTES)
            is_emptied = self._is_emptied(file, end)  # after the read, or bytes of a new log would count as this one's
        except UnreadableLog:
            self.close()  # opened again, it is read from where the ledger ends
            raise
        if is_emptied:
            self._tell(f"{self.name} was emptied")
            self.close()
            self._read_copy()
            return True
        whole = more if is_over or len(more) == source.BLOCK_BYTES else more[: more.rfind(b"\n") + 1]
        if not whole:
            return False
        is_last = is_over or b"\n" in whole
        prepared = self._run.read(Block(whole, end.place.is_cut, is_last, not is_over), self._format)
        if not prepared.said.bytes:
            return False
        kept = whole[: prepared.said.bytes]
        place = self._run.keep(end.place, prepared, kept)
        self._run.count(prepared, self.name, end.lines + 1)
        self._end = end.after(place, prepared.said)
        self._head += kept[: COMPARED_BYTES - len(self._head)]
        self._last = (self._last + kept[-COMPARED_BYTES:])[-COMPARED_BYTES:]
        return True

    def _read_copy(self) -> None:
        """What was added to a log after it was read last, and before it was emptied, is in a copy beside it alone."""
        assert self._format is not None
        for name in sorted(glob(f"{escape(self.name)}?*")):  # noqa: PTH207  # as for names that are patterns
            with ExitStack() as stack:
                try:
                    content = stack.enter_context(source.opened(name))
                    is_copy = content.peek(len(self._head)) == self._head
                except (IsADirectoryError, InvalidLog):
                    continue
                except OSError as error:
                    self._tell(f"{name} cannot be read: {error.strerror}; if it is a copy of {self.name}, import it")
                    continue
                if is_copy:
                    with suppress(InvalidLog, LogReadElsewhere):
                        import_content(self._run, content, self._format, lambda lines: None, math.inf)

    def _is_replaced(self, file: FileIO) -> bool:
        """Whether the name is another file's now."""
        try:
            return not os.path.samestat(Path(self.name).stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unreadable(error) from None

    def _is_emptied(self, file: FileIO, end: End) -> bool:
        """Whether what was read last stands there no more: emptied, or emptied and filled again."""
        return _read_at(file, end.offset - len(self._last), len(self._last)) != self._last


def _read_at(file: FileIO, offset: int, size: int) -> bytes:
    try:
        file.seek(offset)
        return file.read(size)
    except OSError as error:
        raise _unreadable(error) from None


def _unreadable(error: OSError) -> UnreadableLog:
    return UnreadableLog(error.strerror or str(error))
