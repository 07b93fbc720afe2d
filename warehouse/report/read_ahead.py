"""Results that are read before a request needs them: after the start of a process, and after rollups were written."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.database_errors import outage_of, reason_of
from warehouse.errors import DataIncomplete
from warehouse.query import engine
from warehouse.query.hits_snapshot import HitsSnapshot
from warehouse.query.result_cache import ResultCache
from warehouse.report.audience.agent_pages import AgentPages
from warehouse.report.dimensions import months
from warehouse.report.grouping import BY_AGENT
from warehouse.report.path_reports import PathReports
from warehouse.rollups.coverage import Coverage, Part

CACHE_SHARE = 0.5
"""Share of the cache up to which results are read ahead."""
POLL_S = 1.0
"""Time between two searches for new rollups, in seconds."""
PAUSE_S = 0.1
"""Pause after each block or month, in seconds. Reading one uses a core for 0.05 s (10,000 paths) to 4 s (1M paths)."""
LAST_MONTHS = 2
"""Number of months that are also read ahead by agent, which takes 8 MB for a month of 8 million hits."""
DIMENSIONS_PROJECTS = 8
"""Number of projects whose dimensions are read ahead."""
LOG = logging.getLogger("readership.reports")

_MOST_VIEWED = """
SELECT project_id FROM {file} WHERE dimension = 'total' GROUP BY project_id ORDER BY sum(views) DESC, project_id
"""


class ReadAhead:
    """Reader of blocks and rows of dimensions for the reports of one process. Only one thread may call it."""

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        cached: ResultCache,
        coverage: Callable[[HitsSnapshot], Coverage],
        by_path: PathReports,
        agent_pages: AgentPages,
    ) -> None:
        """Create the reader. `coverage` returns the rollups that cover the files of a snapshot."""
        self._database, self._cached, self._coverage = database, cached, coverage
        self._by_path, self._agent_pages = by_path, agent_pages
        self._parts: tuple[Part, ...] = ()

    def __call__(self, take: Callable[[], HitsSnapshot]) -> Iterator[None]:
        """Yield after each block or month that is read. Nothing is read if the rollups are those of the last call.

        A month is read for the reports by path, and for DIMENSIONS_PROJECTS projects also for breakdowns and series.

        The first call reads the projects with most views in the last month, until CACHE_SHARE of the cache is used.
        After a change of the rollups, a call reads the projects again of which a block is in memory. `take` returns the
        newest snapshot.
        """
        parts = self._coverage(take()).parts
        if parts == self._parts:
            return
        projects = self._by_path.projects if self._parts else self._most_viewed(parts)
        self._parts = parts
        for number, project in enumerate(projects):
            if self._by_path.is_large(take(), project):  # reads the block into the cache if it is not
                continue
            yield
            for index in _from_the_ends(len(parts)):
                snapshot = take()
                if self._coverage(snapshot).parts != parts:
                    return
                if self._has_space():
                    self._by_path.read_days(snapshot, project, index)
                    yield
                if number < DIMENSIONS_PROJECTS and self._has_space():
                    self._read_dimensions(snapshot, project, index)
                    yield

    def _read_dimensions(self, snapshot: HitsSnapshot, project: str, index: int) -> None:
        rollup = self._parts[index].rollup
        is_last = index >= len(self._parts) - LAST_MONTHS
        if is_last:
            self._agent_pages.read_month(snapshot, project, index)
        dimensions = (*months.DIMENSIONS, BY_AGENT["quarter"]) if is_last else months.DIMENSIONS
        months.read_ahead(self._cached, rollup.month, str(rollup.dimensions), project, dimensions)

    def _most_viewed(self, parts: Sequence[Part]) -> Iterator[str]:
        """Yield the projects with most views in the last month while the cache has space."""
        file = engine.parquet_at([str(parts[-1].rollup.dimensions)])
        with self._database.cursor() as cursor:
            projects = cursor.execute(_MOST_VIEWED.format(file=file)).fetchall()
        for (project,) in projects:
            if not self._has_space():
                return
            yield project

    def _has_space(self) -> bool:
        return self._cached.used_share < CACHE_SHARE


class ReadAheadThread:
    """The thread that reads ahead until it is closed."""

    def __init__(self, read_ahead: Callable[[], Iterator[None]]) -> None:
        """Create the thread. `read_ahead` yields after each block or month that it reads."""
        self._read_ahead = read_ahead
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="read ahead")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread after the block or month that it is reading."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        fault = ""
        while True:
            try:
                with suppress(DataIncomplete):  # the response to each report has this error
                    for _ in self._read_ahead():
                        if self._stopping.wait(PAUSE_S):
                            return
                fault = ""
            except Exception as error:  # the next round retries, and requests read what they need
                outage = outage_of(error)
                if outage and outage != fault:
                    LOG.error("reading ahead failed and is retried: %s", reason_of(error))  # noqa: TRY400  # no traceback
                elif not outage and str(error) != fault:
                    LOG.exception("reading ahead failed and is retried")
                fault = outage or str(error)
            if self._stopping.wait(POLL_S):
                return


def import_lazy_modules() -> None:
    """Import numpy.ma and dateutil, which pyarrow imports when it first converts an array of NumPy, and a list.

    Otherwise the first report of a process would take 17 ms of processor time more.
    """
    pa.array(np.zeros(0, np.int64))
    pa.array([0])


def _from_the_ends(count: int) -> list[int]:
    """Return the indices of months: the last, the first, the last but one ...

    A range of one year up to now begins and ends within the first two of these.
    """
    return sorted(range(count), key=lambda index: (min(index, count - 1 - index), -index))
