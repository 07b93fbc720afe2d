"""The thread that loads the hot log into the lake and keeps the lake in order.

Every process of the service has one; what is due is told by the data itself, and the lake's lock lets one at a time
work, so that it does not matter how many there are, or which of them dies.
"""

import logging
import math
import sqlite3
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from api import metrics
from api.settings import Settings
from ingest.hotlog import deduplication
from warehouse import clock, disk_space
from warehouse.errors import DataIncomplete, LakeBusy, WarehouseError, engine_errors
from warehouse.hotlog import batches
from warehouse.integrity import durability
from warehouse.lake import delta_table
from warehouse.lake.lock import write_lock
from warehouse.maintenance import compact
from warehouse.maintenance.erase import erase_before, first_trusted_s
from warehouse.maintenance.load import is_due, load
from warehouse.query import engine

LOOK_EVERY_S = 1.0
VACUUM_EVERY_S = 3600
VACUUM_AGAIN_S = 60
"""After a failure: what is in the way may be gone soon, and each try may wait for the lake."""
VACUUM_WAIT_S = 60.0
LAST_LOAD_WAIT_S = 60.0
LOG = logging.getLogger("readership.maintenance")


class Maintenance:
    """One process's share of the upkeep."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._hot = batches.connect(settings.hot_log)
        # A connection of its own: while the thread waits for the lock of another process, nobody else can use its one.
        self._read_hot = batches.connect(settings.hot_log)
        self._database = engine.connect(settings.run / "spill")
        self._vacuum_tried_s = -math.inf
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maintenance")
        self.fault: str | None = None
        """Why the last round failed; None if it did not."""

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Load what is left, so that nothing waits in the hot log of a service that is down."""
        self._stopping.set()
        try:
            if self._thread.ident is not None:
                self._thread.join()
                self._load_the_rest()
        finally:
            self._database.close()
            self._read_hot.close()
            self._hot.close()

    def _load_the_rest(self) -> None:
        faults: tuple[type[Exception], ...] = (WarehouseError, sqlite3.DatabaseError, OSError, *engine_errors())
        try:
            load(self._hot, self._settings.lake, LAST_LOAD_WAIT_S)
        except LakeBusy:
            LOG.warning("the lake is busy: what waits in the hot log is loaded at the next start")
        except faults:
            LOG.exception("what waits in the hot log could not be loaded; it is at the next start")

    def backlog(self) -> batches.Backlog:
        """Return what waits in the hot log now."""
        return batches.backlog(self._read_hot)

    def lake_fault(self) -> str | None:
        """Return what the lake lacks of what was stored in it; None if nothing is missing. No table is opened."""
        try:
            durability.require_commits(self._read_hot, self._settings.lake)
        except DataIncomplete as error:
            return str(error)
        return None

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            try:
                self._round()
                self.fault = None
            except LakeBusy:
                continue
            except Exception as error:  # noqa: BLE001  # a full disk passes, and hits are safe in the hot log
                self._set_fault(error)
                metrics.LOADS.labels("failed").inc()

    def _set_fault(self, error: Exception) -> None:
        """Log each new fault once: each round meets it again while it lasts. Missing data needs no traceback."""
        kind = "disk full" if disk_space.is_full(error) else type(error).__name__
        fault = f"{kind}: {error}"
        if fault != self.fault:
            traceback = None if isinstance(error, DataIncomplete) else error
            LOG.error("maintenance failed and is retried: %s", error, exc_info=traceback)
        self.fault = fault

    def _round(self) -> None:
        root = self._settings.lake
        if self._load_due() and not self._is_load_due():  # hits that come faster than they are loaded come first
            compact.compact(self._hot, root, self._database, compact.CROWDED_FILES, wait_s=0, between=self._load_due)
        self.vacuum(datetime.now(UTC))

    def _load_due(self, wait_s: float = 0) -> bool:
        """Whether a load was due, and so done."""
        if not self._is_load_due():
            return False
        loaded = load(self._hot, self._settings.lake, wait_s)
        metrics.LOADS.labels("done").inc()
        metrics.LOADED.inc(loaded.rows)
        pa.default_memory_pool().release_unused()  # Arrow keeps what a load took, and the next is a minute away
        return True

    def _is_load_due(self) -> bool:
        return is_due(self._hot, self._settings.load_rows, self._settings.load_every_s, time.time())

    def vacuum(self, now: datetime) -> None:
        """Vacuum the lake if that is due: every VACUUM_EVERY_S, and VACUUM_AGAIN_S after a failure in this process.

        Every step has its turn; what the last that failed raised is raised then, in the context of the others.

        Raises:
            LakeBusy: another process does it, or holds the lake for long.
        """
        if not self._is_vacuum_due(now.timestamp()):
            return
        self._vacuum_tried_s = now.timestamp()
        with write_lock(self._settings.run, wait_s=0):  # by one process at a time: each step takes the lake by itself
            with ExitStack() as steps:  # called from the last to the first, each whatever became of those before it
                for step in (self._remove_files, self._remove_old, self._compact_closed):
                    steps.callback(step, now)
            _last_vacuum(self._settings.lake).touch()

    def _compact_closed(self, now: datetime) -> None:
        between = partial(self._load_due, VACUUM_WAIT_S)
        compact.compact(self._hot, self._settings.lake, self._database, 1, VACUUM_WAIT_S, now.date(), between)

    def _remove_old(self, now: datetime) -> None:
        """Remove hits past the retention, and event ids past their seven days, unless the clock has jumped."""
        root = self._settings.lake
        first_s = partial(first_trusted_s, root, self._database, now.timestamp())
        if not clock.observe(root, now.timestamp(), first_s).is_trusted:
            LOG.warning(clock.warning(root))
            return
        with ExitStack() as steps:
            days = self._settings.retention_days
            if days:
                steps.callback(erase_before, self._hot, root, now.date(), days, VACUUM_WAIT_S)
            steps.callback(deduplication.delete_expired, self._hot, now.timestamp())

    def _remove_files(self, now: datetime) -> None:
        compact.vacuum(self._hot, self._settings.lake, VACUUM_WAIT_S)

    def _is_vacuum_due(self, now_s: float) -> bool:
        mark = _last_vacuum(self._settings.lake)
        is_old = not mark.exists() or abs(now_s - mark.stat().st_mtime) >= VACUUM_EVERY_S
        return is_old and abs(now_s - self._vacuum_tried_s) >= VACUUM_AGAIN_S


def _last_vacuum(root: Path) -> Path:
    """A file whose time says when the lake was last tidied whole, by whichever process."""
    return root / delta_table.LAST_VACUUM
