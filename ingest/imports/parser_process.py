"""Parsing of the blocks of a JSON log in a child process, because the JSON decoder holds the GIL.

A block is copied into memory that both processes share. This module does not import Arrow, because the child process
must be forked before Arrow starts threads.
"""

from __future__ import annotations

import gc
import mmap
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ingest.formats import detect
from ingest.imports import source
from warehouse.batch.parent import follow_parent, forking

if TYPE_CHECKING:  # these modules load Arrow
    from ingest.formats.detect import Format
    from ingest.formats.page_filter import Pages
    from ingest.imports.chunk import Block, ParseResult

OtherProcess = Callable[["Block", "Format", "Pages"], "ParseResult | None"]
"""A function that parses a block in another process. It returns None if that process is busy or has ended, and for a
block that has to be parsed in this process."""
_JSON_START = b"{"


@contextmanager
def parser_process(logs: Sequence[str]) -> Iterator[OtherProcess | None]:
    """Yield a function that parses the blocks of JSON logs in a child process; None if no child process can start.

    The child process is forked here: call this function before the process has threads. The child process loads its
    libraries at once if the first of the logs begins like JSON.
    """
    context = multiprocessing.get_context("fork")  # as in `classification.pool`; and the child process has `shared`
    connection, of_child = context.Pipe()
    with closing(mmap.mmap(-1, source.BLOCK_BYTES)) as shared, closing(connection):
        process = context.Process(target=_serve, args=(shared, of_child, connection, _is_json(logs)), daemon=True)
        try:
            with forking():
                process.start()
        except OSError:  # the system has no memory for another process
            yield None
            return
        finally:
            of_child.close()
        try:
            yield _Client(shared, connection).parse
        finally:
            process.kill()
            process.join()


class _Client:
    """End of the connection in the importing process. Safe for several threads, which are served one at a time."""

    def __init__(self, shared: mmap.mmap, connection: Connection) -> None:
        self._shared = shared
        self._connection = connection
        self._lock = Lock()

    def parse(self, block: Block, format: Format, pages: Pages) -> ParseResult | None:
        size = len(block.data)
        if format.json is None or format.json.has_memory or size > len(self._shared):
            return None
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._shared[:size] = block.data
            self._connection.send((size, block.starts_mid_line, block.is_last, block.is_growing, format.name, pages))
            result: ParseResult = self._connection.recv()
        except (EOFError, OSError):  # the child process was killed
            return None
        finally:
            self._lock.release()
        return result


def _serve(shared: mmap.mmap, connection: Connection, of_parent: Connection, is_expected: bool) -> None:
    """Parse the blocks that the parent process sends, until it ends this process."""
    follow_parent()
    of_parent.close()
    gc.disable()  # see `api.cli.log_import.command`
    if not is_expected:
        connection.poll(None)
    from ingest.imports import chunk  # noqa: PLC0415  # loads Arrow
    from ingest.imports.request_cache import request_cache  # noqa: PLC0415  # the same

    gc.freeze()
    gc.enable()
    while True:
        try:
            size, starts_mid_line, is_last, is_growing, name, pages = connection.recv()
        except EOFError:  # the parent process was killed
            return
        block = chunk.Block(shared[:size], starts_mid_line, is_last, is_growing)
        connection.send(chunk.parse(block, detect.named(name, ()), request_cache(pages)))
        del block


def _is_json(logs: Sequence[str]) -> bool:
    """Return whether the first log is a file that begins like a JSON log."""
    first = Path(logs[0])
    try:
        if not first.is_file():
            return False
        with first.open("rb") as file:
            return file.read(1) == _JSON_START
    except OSError:  # reported when the file is imported
        return False
