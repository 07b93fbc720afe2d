"""Check every invariant of the stored data, and report each with its fault.

`warehouse.rollups.check` checks the rollups.
"""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
from deltalake.exceptions import DeltaError

from warehouse.errors import DataIncomplete, HotLogBehind, LakeUnreachable, RollupDamaged, UnsafeStore
from warehouse.hotlog import batches, disk_space
from warehouse.hotlog.connection import HotLogPlace
from warehouse.integrity import hot_log_check
from warehouse.integrity.durability import durable_writes
from warehouse.lake import delta_table, roots
from warehouse.lake.delta_table import File
from warehouse.lake.roots import Root
from warehouse.plural import counted
from warehouse.query import engine, sql_views
from warehouse.query.snapshot import SnapshotReader
from warehouse.rollups import catalog, check, ranked
from warehouse.schema import HOT
from warehouse.tables import HITS_TABLE, VISITOR_TABLES

_WRONG_DAY = "SELECT count(*), min(path) FROM hits WHERE date <> CAST(ts AT TIME ZONE 'UTC' AS DATE)"
_WRONG_LOADS = "SELECT count(*), min(project_id || ' ' || date) FROM asset_loads WHERE loads < 1"
_WRONG_REQUESTS = """
SELECT count(*), min(project_id || ' ' || date || ' ' || coalesce(path, '')) FROM requests
WHERE least(requests, errors, bytes) < 0 OR requests + coalesce(errors, 0) < 1 OR sized NOT BETWEEN 0 AND requests
   OR errors > 0 AND (traffic = 'human' OR status NOT BETWEEN 400 AND 599) OR first_seen > last_seen
   OR month <> strftime(date, '%Y-%m') OR date <> CAST(first_seen AT TIME ZONE 'UTC' AS DATE)
   OR date <> CAST(last_seen AT TIME ZONE 'UTC' AS DATE)
"""
_WRONG_EVENTS = """
SELECT count(*), min(project_id || ' ' || name) FROM events
WHERE date <> CAST(ts AT TIME ZONE 'UTC' AS DATE) OR name = '' OR props IS NOT NULL AND NOT json_valid(props)
"""
_TWICE = """
SELECT count(*), min(project_id || ' ' || event_id)
FROM (SELECT project_id, event_id, received_at - lag(received_at) OVER same AS apart
      FROM hits WHERE event_id IS NOT NULL
      WINDOW same AS (PARTITION BY project_id, event_id, source = 'beacon' ORDER BY received_at))
WHERE apart < INTERVAL 7 DAY - INTERVAL 1 MINUTE
"""
"""Event ids repeated within seven days less a minute. The minute is a tolerance: de-duplication uses the time of a
commit in whole seconds, which is later than `received_at`."""
_CHANGED = """
SELECT count(*) FROM (
    SELECT project_id FROM hits WHERE visitor IS NOT NULL GROUP BY project_id, date, visitor, traffic = 'human'
    HAVING min(hash(agent, operator, purpose, verification, browser, os, device))
        <> max(hash(agent, operator, purpose, verification, browser, os, device)))
"""
"""Visitors of a day with two agents or devices, of which reports count one."""
NOT_AHEAD = "every batch in the tables was in the hot log"
SAFE = "the object store refuses the second writer of an object"
OPENED = "the logs of the tables can be read"
REWRITE = "; readership rebuild writes the rollups again"
COMPLETE = "the tables have all that was stored in them"


@dataclass(frozen=True, slots=True)
class Finding:
    """One invariant, and its fault; None if the invariant is true. `warning` is what the owner should check."""

    invariant: str
    fault: str | None
    warning: str | None = None


def examine(
    hot: HotLogPlace, root: Root, spill: Path, wait_s: float, late_s: float = hot_log_check.LATE_S
) -> Iterator[Finding]:
    """Check each invariant in turn. The lake is locked only while the snapshot is taken.

    `late_s` is the age of a hit in PostgreSQL at which it should be in the lake, in seconds.

    The check changes data only to complete the work of a killed process: commits are synced, or set aside if they are
    broken.

    The hot log comes first. If it cannot be read, the invariants that depend on it are skipped.

    Raises:
        LakeBusy: see `write_lock`.
    """
    folders = (hot.parent, root.local) if isinstance(hot, Path) else (root.local,)
    yield Finding("the disk has space for new hits", _full_disk(*folders))
    if root.uri is not None:
        yield Finding(SAFE, _unsafe_store(root))
    with hot_log_check.readable(hot) as readable:
        is_readable = True
        for finding in _check_hot_log(readable, late_s):
            is_readable = is_readable and finding.fault is None
            yield finding
        if is_readable:
            yield from _check_snapshot(readable, root, spill, wait_s)


def _full_disk(*folders: Path) -> str | None:
    for folder in folders:
        free = disk_space.free_bytes(folder)
        if free < disk_space.MARGIN_BYTES:
            return f"disk full: {free:,} bytes are free in {folder}, and {disk_space.MARGIN_BYTES:,} are needed"
    return None


def _unsafe_store(root: Root) -> str | None:
    try:
        root.require_safe()
    except (UnsafeStore, LakeUnreachable) as error:
        return str(error)
    return None


def _check_hot_log(hot: HotLogPlace, late_s: float) -> Iterator[Finding]:
    fault = hot_log_check.broken_file(hot) if isinstance(hot, Path) else hot_log_check.broken_server(hot)
    yield Finding("the hot log is a whole SQLite file" if isinstance(hot, Path) else "the hot log can be read", fault)
    if fault is None:
        with closing(batches.connect(hot)) as connection:
            yield Finding("every waiting batch has its checksum", batches.find_damaged(connection))
            yield Finding("every waiting batch can be read and has its rows", hot_log_check.broken_batch(connection))
            if not isinstance(connection, sqlite3.Connection):
                for invariant, warning in hot_log_check.server_warnings(connection, late_s, time.time()):
                    yield Finding(invariant, None, warning)


def _check_snapshot(hot: HotLogPlace, root: Root, spill: Path, wait_s: float) -> Iterator[Finding]:
    try:
        for spec in delta_table.specs(root):
            delta_table.open_table(root, spec)
        opened = SnapshotReader(hot, root, columns=HOT.names)
    except HotLogBehind as error:
        yield Finding(NOT_AHEAD, str(error))
        return
    except (DeltaError, DataIncomplete, LakeUnreachable) as error:
        yield Finding(OPENED, str(error))
        return
    yield Finding(OPENED, None)
    with closing(opened) as reader, closing(batches.connect(hot)) as connection:
        try:
            with durable_writes(connection, root, wait_s):
                snapshots = reader.take_all()
        except DataIncomplete as error:
            yield Finding(COMPLETE, str(error))
            return
        yield Finding(COMPLETE, None)
        files = (file for snapshot in snapshots.values() for file in snapshot.files)
        yield Finding("every file of the tables exists, with its size", _missing_file(files))
        yield Finding(NOT_AHEAD, None)
    with closing(engine.connect(spill)) as database:
        for invariant, sql in (
            ("every hit is in the partition of its UTC day", _WRONG_DAY),
            ("asset_loads has loads of assets", _WRONG_LOADS),
            ("requests has requests on their days, and errors of AI agents and bots", _WRONG_REQUESTS),
            ("events has events on their days", _WRONG_EVENTS),
            ("no event id is counted twice within seven days", _TWICE),
        ):
            yield Finding(invariant, _counterexamples(database, snapshots, sql))
        yield Finding("every visitor of a day has one agent and device", None, _changed_visitors(database, snapshots))
        yield Finding("every rollup can be read", _damaged_rollup(root))
        yield Finding("every rollup equals hits", _wrong_rollup(database, root, snapshots))


def _missing_file(files: Iterable[File]) -> str | None:
    for file in files:
        try:
            size = roots.at(file.path).stat().st_size
        except FileNotFoundError:
            return f"{file.path} is missing"
        if size != file.size:
            return f"{file.path} has {size} bytes, not {file.size}"
    return None


def _counterexamples(database: duckdb.DuckDBPyConnection, snapshots: sql_views.Snapshots, sql: str) -> str | None:
    try:
        with database.cursor() as cursor:
            sql_views.create_temporary(cursor, snapshots)
            [(times, first)] = cursor.execute(sql).fetchall()
    except duckdb.Error as error:
        return f"cannot be checked: {str(error).partition(chr(10))[0]}"
    return f"{counted(times, 'time')}, the first: {first}" if times else None


def _changed_visitors(database: duckdb.DuckDBPyConnection, snapshots: sql_views.Snapshots) -> str | None:
    with suppress(duckdb.Error), database.cursor() as cursor:  # damaged files are a fault of another invariant
        sql_views.create_temporary(cursor, snapshots)
        ((number,),) = cursor.execute(_CHANGED).fetchall()
        return (
            f"{counted(number, 'visitor')} of a day with two agents or devices: reports count one of these"
            if number
            else None
        )
    return None


def _damaged_rollup(root: Root) -> str | None:
    for folder in (each for month in catalog.list_months(root) for each in catalog.list_folders(root, month)):
        try:
            catalog.read_rollup(folder)
        except FileNotFoundError:  # a rollup that is being written, or whose writer was killed
            continue
        except RollupDamaged as error:
            return f"{error}{REWRITE}"
    return None


def _wrong_rollup(database: duckdb.DuckDBPyConnection, root: Root, snapshots: sql_views.Snapshots) -> str | None:
    files, beside = snapshots[HITS_TABLE].files, {spec: snapshots[spec].files for spec in VISITOR_TABLES}
    parts, ranking = catalog.choose(root, files).parts, ranked.find(root)
    checks = {part.rollup.folder: partial(check.find_difference, database, part, files, beside) for part in parts}
    if ranking is not None:
        checks[ranking.folder] = partial(check.find_ranking_fault, database, ranking, parts)
    for folder, find_difference in checks.items():
        try:
            difference = find_difference()
        except duckdb.Error as error:
            difference = f"{folder} cannot be checked: {str(error).partition(chr(10))[0]}"
        if difference:
            return f"{difference}{REWRITE}"
    return None
