"""One node: its connections, its writer of posts, its readers, and its start from the files of its folder."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from api import data_folder
from api.settings import Settings
from ingest.hotlog.deduplication import Post, Receipt
from ingest.hotlog.writer import HotLog
from tests.simulation.machine import Machine
from tests.simulation.tasks import Task
from warehouse.control import database as control
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection
from warehouse.lake.roots import LocalPath
from warehouse.query import engine
from warehouse.query.snapshot import SnapshotReader
from warehouse.report.reports import Reports
from warehouse.schema import HOT

SECRET = b"secret of the store"
CACHE_BYTES = 32 * 1024 * 1024
BACKLOG_ROWS_MAX = 10**9
SLOTS = ("service", "command")
"""Processes of a node that run one operation at a time, beside the posts and the reports of its server."""


class Node:
    """A node over a data folder. It is down until the task of `start` has ended."""

    def __init__(self, name: str, folder: Path, database_url: str, machine: Machine) -> None:
        self.name, self.folder, self.machine = name, folder, machine
        self.settings = Settings(folder, database_url, self.lake)
        self.tasks: dict[str, Task] = {}
        self.connections: dict[str, HotConnection] = {}
        self.is_up = False
        self._opened: list[HotConnection | HotLog | Reports | SnapshotReader] = []

    @property
    def lake(self) -> LocalPath:
        return LocalPath(self.folder / "lake")

    @property
    def spill(self) -> Path:
        return self.folder / "run" / "spill"

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.machine.clock.now_s, UTC)

    def start(self) -> None:
        """Start as the service does: complete what a killed process left, then open everything."""
        control.connect(self.settings.database_url).close()
        data_folder.prepare(self.settings)
        place = self.settings.hot_log
        self.connections = {slot: batches.connect(place) for slot in SLOTS}
        self._opened += self.connections.values()
        self._loop = asyncio.new_event_loop()
        self._writer = self._loop.run_until_complete(self._open_writer())
        self.database: duckdb.DuckDBPyConnection = engine.connect(self.spill)
        self.reports = Reports(
            SnapshotReader(place, self.lake, lambda: self.machine.clock.now_s), self.lake, self.spill, CACHE_BYTES
        )
        self.snapshots = SnapshotReader(place, self.lake, columns=HOT.names)
        self._opened += [self._writer, self.reports, self.snapshots]
        self.is_up = True

    def post(self, posts: Sequence[Post]) -> list[Receipt]:
        """Store posts in one commit, as posts that arrive at the same time, and return their receipts."""
        return self._loop.run_until_complete(self._post(posts))

    def stop(self) -> None:
        """Kill all tasks and close everything. Nothing is written any more: the folder may have been copied."""
        for task in self.tasks.values():
            task.kill()
        self.tasks.clear()
        for each in self._opened:
            each.close()
        if self.is_up:
            self.database.close()
            self._loop.close()
        self.is_up = False
        self._opened = []

    async def _open_writer(self) -> HotLog:
        return HotLog(self.settings.hot_log, BACKLOG_ROWS_MAX)

    async def _post(self, posts: Sequence[Post]) -> list[Receipt]:
        return list(await asyncio.gather(*[self._writer.post(post) for post in posts]))
