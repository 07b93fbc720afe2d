"""Writer of the hot log: rows of many posts in one durable commit, with the receipts sent after the commit.

A thread writes the rows of all waiting posts as one Arrow batch, with their event ids and Idempotency-Keys, and
commits. Several processes, or machines with one PostgreSQL database, may write one hot log; the database serialises
their commits."""

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ingest.errors import RETRY_AFTER_S, Overloaded
from ingest.hotlog import deduplication
from ingest.hotlog.deduplication import Post, Receipt
from ingest.hotlog.new_values import NewValues
from warehouse.database.postgresql import ServerError
from warehouse.database.transaction import transaction
from warehouse.database_errors import reason_of, status_of
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches, disk_space, refusals, wal
from warehouse.hotlog.connection import HOT_LOG_ERRORS, HotConnection, HotLogPlace
from warehouse.schema import Row
from warehouse.tables import HITS_TABLE, Spec

WAITING_ROWS_MAX = 100_000
"""Maximum number of rows in this process that are not committed; beyond it posts are refused."""
BACKLOG_BYTES_MAX = 1024 * 1024 * 1024
"""Maximum size in bytes of the hits that wait to be loaded; beyond it posts are refused. Hits with long texts reach it
before the maximum number of rows."""
LOCK_WAIT_S = 3.0
"""Time in seconds for which a commit waits for the lock of another process before its posts are answered 503. A post
that arrives during a commit waits for the end of that commit, and then for the next one."""
LOOK_EVERY_S = 1.0
"""Interval in seconds at which the backlog and the free disk space are read."""
CHECKED_ROWS = 500
"""Number of stored rows after which the free disk space is read before the next commit."""
MAY_BE_STORED = (
    ". The connection was lost during the commit, and the hits may be stored: send them again with the same "
    "Idempotency-Key or event ids, which count once"
)
"""End of the message of a 503 whose hits may be stored."""
LOG = logging.getLogger("readership.hotlog")

Waiting = tuple[Post, "asyncio.Future[Receipt]"]
"""A post that is not committed, and the future of its receipt."""
_ROWS = {spec: pa.struct(list(spec.hot)) for spec in deduplication.SOURCE}
_EVENT_ID, _SOURCE = deduplication.EVENT_ID[HITS_TABLE], deduplication.SOURCE[HITS_TABLE]


class _NewRefusals(Exception):
    """A project was deleted since the writer read the refusals."""


class HotLog:
    """Writer of one process. `post` must be called on the event loop on which the writer was created.

    Posts that arrive during a commit are collected on the loop for the next commit: the thread is notified once per
    commit and not once per post.
    """

    def __init__(
        self, place: HotLogPlace, backlog_rows_max: int, lake: Path | None = None, new_values: NewValues | None = None
    ) -> None:
        """Open the hot log. `lake` is a local folder on whose disk a hot log in PostgreSQL needs space to be loaded."""
        self._connection = batches.connect(place, LOCK_WAIT_S)
        deduplication.create(self._connection)
        self._read_refusals()
        self._new_values = new_values or NewValues()
        self._backlog_rows_max = backlog_rows_max
        self._stored = batches.backlog(self._connection)  # only the thread changes it
        self._waiting_rows = 0
        self.fault: str | None = None
        """Reason why the last commit failed; None if it succeeded."""
        self._folder = place.parent if isinstance(place, Path) else lake
        self._unchecked_rows = 0
        self.shortage = self._find_shortage()
        """Reason why posts are refused when disk space is short; None if there is enough."""
        self._unexpected = ""
        self._collected: list[Waiting] = []
        self._is_writing = False
        self._queue: queue.SimpleQueue[list[Waiting] | None] = queue.SimpleQueue()
        self.loop = asyncio.get_running_loop()
        """Event loop on which `post` is called."""
        self._thread = threading.Thread(target=self._write, name="hotlog")
        self._thread.start()

    def post(self, post: Post) -> "asyncio.Future[Receipt]":
        """Store the rows, and return a future that is done when they are on disk and survive a loss of power.

        If this method or the future raises an error, no row is stored. There is one exception: if the connection to
        PostgreSQL was lost during the COMMIT, the rows may be stored, and the message of Overloaded has MAY_BE_STORED.

        Raises:
            Overloaded: too many rows wait in this process or for the loader, or the disk is nearly full.
        The future raises:
            Overloaded: the hot log cannot be written, because it is locked, damaged or does not answer, or the disk is
                full.
            IdempotencyMismatch: the key was used before for another body.
            ProjectNotFound: the project was deleted since the request began.
        """
        if self.shortage is not None:
            raise Overloaded(self.shortage, RETRY_AFTER_S)
        is_full = self._stored.rows + self._waiting_rows + len(post.rows) > self._backlog_rows_max
        if is_full or self._stored.bytes >= BACKLOG_BYTES_MAX:
            raise Overloaded("too many hits wait to be loaded into the lake", RETRY_AFTER_S)
        if self._waiting_rows > WAITING_ROWS_MAX:
            raise Overloaded("hits arrive faster than the disk takes them", RETRY_AFTER_S)
        future: asyncio.Future[Receipt] = self.loop.create_future()
        self._waiting_rows += len(post.rows)
        self._collected.append((post, future))
        if not self._is_writing:
            self._is_writing = True
            self.loop.call_soon(self._hand_over)
        return future

    def close(self) -> None:
        """Commit the waiting posts, schedule their receipts on the event loop, and close the file."""
        self._hand_over()
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _hand_over(self) -> None:
        self._queue.put(self._collected)
        self._collected = []

    def _write(self) -> None:
        """Commit the posts that the loop hands over, until `close`; runs in the thread."""
        looked_s = 0.0
        while True:
            try:
                waiting = self._queue.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                waiting = []
            if waiting is None:
                return
            if waiting:
                self.loop.call_soon_threadsafe(self._answer, waiting, self._commit([post for post, _ in waiting]))
            if (now_s := time.monotonic()) - looked_s >= LOOK_EVERY_S:
                self._look_safely()
                looked_s = now_s

    def _look_safely(self) -> None:
        """Call `_look`, and log each new error that it does not expect: such an error must not end the thread."""
        try:
            self._look()
        except Exception as error:  # such as one of a value that a damaged file has changed
            if repr(error) != self._unexpected:
                LOG.exception("the backlog of the hot log cannot be read")
            self._unexpected = repr(error)

    def _look(self) -> None:
        """Read the backlog and the free disk space, and clear a fault that is over.

        Commits alone would not clear the fault: a load balancer sends no posts to a service that is not ready. If the
        hot log cannot be read, the last values remain, and the next posts report the fault.
        """
        with suppress(*HOT_LOG_ERRORS, OSError):
            self._stored = batches.backlog(self._connection)
            self._set_shortage(self._find_shortage())
            if self.shortage is not None:
                wal.empty(self._connection)  # a failed commit leaves the WAL enlarged
            if self.fault is not None:
                wal.try_write(self._connection)
                self._set_fault(None)

    def _find_shortage(self, more: int = 0) -> str | None:
        """Return the reason why a batch of `more` bytes may not be stored; None if the disk has enough space."""
        self._unchecked_rows = 0
        if self._folder is None:
            return None
        return disk_space.shortage(self._connection, disk_space.free_bytes(self._folder), more)

    def _commit(self, posts: list[Post]) -> list[Receipt | Exception]:
        """Store the posts in one transaction. Return one answer per post, or the same error for all of them."""
        try:
            answers = self._store(posts)
        except (*HOT_LOG_ERRORS, OSError) as error:
            reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else status_of(error)
            self._set_fault(reason, reason_of(error))
            return [Overloaded(f"the hot log cannot be written: {reason}{_outcome(error)}", RETRY_AFTER_S)] * len(posts)
        except Exception as error:  # noqa: BLE001  # a full disk or a bug fails these posts; the thread continues
            return [error] * len(posts)
        self._set_fault(None)
        return answers

    def _store(self, posts: list[Post]) -> list[Receipt | Exception]:
        """Store the posts of all projects except deleted ones."""
        while True:
            try:
                answers = iter(self._store_all([post for post in posts if post.internal_id not in self._refused]))
            except _NewRefusals:
                self._read_refusals()
                continue
            refused = self._refused
            return [ProjectNotFound(post.project) if post.internal_id in refused else next(answers) for post in posts]

    def _read_refusals(self) -> None:
        self._last_refusal = refusals.last(self._connection)  # read first, so that the next commit detects a later one
        self._refused = refusals.internal_ids(self._connection)

    def _store_all(self, posts: list[Post]) -> list[Receipt | Exception]:
        """Store the posts, or raise _NewRefusals and store nothing if a project was deleted since the last commit."""
        rows = [row for post in posts for row in post.rows]
        is_checked = any(post.idempotency_key is not None or post.spec is not HITS_TABLE for post in posts)
        if is_checked or any(row[_EVENT_ID] is not None or row[_SOURCE] == "beacon" for row in rows):
            return self._store_deduplicated(posts, time.time())
        if rows:
            self._append(rows, time.time())
        return [Receipt(len(post.rows), 0, post.rejected, post.cut) for post in posts]

    def _store_deduplicated(self, posts: list[Post], now_s: float) -> list[Receipt | Exception]:
        rows: dict[Spec, list[Row]] = {post.spec: [] for post in posts}
        with transaction(self._connection):
            if refusals.last(self._connection) != self._last_refusal:
                raise _NewRefusals
            answers: list[Receipt | Exception] = [
                deduplication.deduplicate(self._connection, post, rows[post.spec], int(now_s)) for post in posts
            ]
            for spec, new in rows.items():
                if new:
                    self._append(self._new_values.bounded(self._connection, new, int(now_s), spec), now_s, spec)
        return answers

    def _append(self, rows: Sequence[Row], now_s: float, spec: Spec = HITS_TABLE) -> None:
        batch = _record_batch(rows, spec)
        self._unchecked_rows += len(rows)
        if self._unchecked_rows >= CHECKED_ROWS and (shortage := self._find_shortage(batch.nbytes)) is not None:
            raise Overloaded(shortage, RETRY_AFTER_S)
        size = batches.append_if_none_refused(self._connection, batch, now_s, self._last_refusal, spec)
        if not size:
            raise _NewRefusals
        more = {"rows": self._stored.rows + len(rows), "bytes": self._stored.bytes + size}
        self._stored = replace(self._stored, **more)

    def _set_shortage(self, shortage: str | None) -> None:
        if shortage is not None and self.shortage is None:
            LOG.error("posts are answered 503: %s", shortage)
        elif shortage is None and self.shortage is not None:
            LOG.warning("there is enough disk space again: posts are stored")
        self.shortage = shortage

    def _set_fault(self, fault: str | None, message: str = "") -> None:
        """Set the fault, and log each new one once with the database's message: every post fails until it is over."""
        if fault is not None and fault != self.fault:
            LOG.error("the hot log cannot be written, posts are answered 503: %s", message)
        elif fault is None and self.fault is not None:
            LOG.warning("the hot log can be written again")
        self.fault = fault

    def _answer(self, waiting: list[Waiting], answers: list[Receipt | Exception]) -> None:
        if self._collected:
            self._hand_over()
        else:
            self._is_writing = False
        for (post, future), answer in zip(waiting, answers, strict=True):
            self._waiting_rows -= len(post.rows)
            if future.cancelled():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


def _outcome(error: Exception) -> str:
    """Return MAY_BE_STORED if the rows of a failed commit may be stored, otherwise an empty text."""
    return MAY_BE_STORED if isinstance(error, ServerError) and error.may_be_committed else ""


def _record_batch(rows: Sequence[Row], spec: Spec = HITS_TABLE) -> pa.RecordBatch:
    """Return the rows as a batch. For a few rows, one call for all columns takes half the time of a call per column."""
    return pa.RecordBatch.from_struct_array(pa.array(rows, _ROWS[spec]))


def store(connection: HotConnection, rows: list[Row], now_s: float) -> None:
    """Commit rows that do not come from a post, such as those of an imported log."""
    with transaction(connection):
        batches.append(connection, _record_batch(rows), now_s)
