"""Comparison of the hot log and the control database with the lake: is one of them missing, or older than the lake?

Counts are read from the lake and the hot log together. With a hot log that is missing or older they would be smaller
without a word, and hits would be acknowledged under batch ids that the lake already has: those would never be loaded.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from warehouse.database_errors import is_damage
from warehouse.errors import DataIncomplete, HotLogBehind
from warehouse.hotlog import batches
from warehouse.lake import delta_table, registry
from warehouse.lake.registry import ControlRecord, HotLogRecord
from warehouse.transaction import BUSY_TIMEOUT_S

if TYPE_CHECKING:
    from warehouse.control.database import ControlIdentity

ADVICE = (
    "restore the copy that is as new as the lake; without one, readership recover lists what is lost and how to go on"
)
_OLDER = "is older than the lake, which has its batches up to {}; its own end at {}"


@dataclass(frozen=True, slots=True)
class HotLogIdentity:
    """Identity of a hot log: its node id, None where there is no whole file, and the highest batch id ever given."""

    node: str | None
    last_id: int = 0


def read_identity(hot_log: Path) -> HotLogIdentity:
    """Read the identity of the hot log. Creates nothing, also not the tables of an empty file.

    Raises:
        DataIncomplete: the file is damaged.
    """
    if not hot_log.is_file() or hot_log.stat().st_size == 0:
        return HotLogIdentity(None)
    try:
        return _read_identity(hot_log)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise _damaged(hot_log, str(error)) from None


def require_whole(hot_log: Path) -> None:
    """Raise DataIncomplete if a page of the hot log is damaged. Reads the whole file; a missing one is no damage."""
    if read_identity(hot_log).node is None:
        return
    with closing(sqlite3.connect(hot_log, timeout=BUSY_TIMEOUT_S)) as connection:
        try:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            found = str(error)
    if found != "ok":
        raise _damaged(hot_log, " ".join(found.split()))


def _damaged(hot_log: Path, reason: str) -> DataIncomplete:
    return DataIncomplete(
        f"{hot_log} cannot be read ({reason}): restore it from a copy that is as new as the lake; without one, move "
        "it out of the folder and run readership recover"
    )


def _read_identity(hot_log: Path) -> HotLogIdentity:
    with closing(sqlite3.connect(hot_log, timeout=BUSY_TIMEOUT_S)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        row = connection.execute("SELECT id FROM node").fetchone() if "node" in tables else None
        return HotLogIdentity(row[0], batches.last_id(connection)) if row else HotLogIdentity(None)


def open_tables(root: Path) -> list[DeltaTable]:
    """Open the tables of the lake that exist."""
    specs = [spec for spec in delta_table.TABLES if DeltaTable.is_deltatable(str(root / spec.name))]
    return [delta_table.open_table(root, spec) for spec in specs]


def has_files(root: Path) -> bool:
    """Return whether a table has a Parquet file. No table is opened: after a power loss its log may need repair."""
    return any(next((root / spec.name).glob("*/*.parquet"), None) for spec in delta_table.TABLES)


def require_identity(hot_log: Path, root: Path) -> None:
    """Raise HotLogBehind if the hot log is missing or not one that the lake was filled from.

    The hot log is read last: one that another process creates and fills meanwhile is then newer than the rest.
    """
    has_hits, records = has_files(root), registry.hot_logs(root)
    _raise_for(hot_log, identity_fault(read_identity(hot_log), records, has_hits))


def require_newest(hot_log: Path, root: Path, tables: list[DeltaTable] | None = None) -> None:
    """Raise HotLogBehind if the hot log is older than the lake. `tables` are those of the lake if they are open."""
    opened = open_tables(root) if tables is None else tables
    _raise_for(hot_log, older_fault(read_identity(hot_log), opened))


def _raise_for(hot_log: Path, fault: str | None) -> None:
    if fault is not None:
        raise HotLogBehind(f"{hot_log} {fault}: {ADVICE}")


def identity_fault(hot: HotLogIdentity, records: dict[str, HotLogRecord], has_hits: bool) -> str | None:
    """Return what is wrong with the identity of a hot log, as the rest of a sentence that begins with its path.

    A lake without records was last used by 0.1.0: only a hot log without a batch is suspicious there.
    """
    if hot.node is None:
        return "is missing or empty, and the lake beside it has hits" if records or has_hits else None
    record = records.get(hot.node)
    if record is not None and record.is_given_up:
        return "was given up as lost, and another hot log took its place"
    if record is None and records:
        return "is new, and the lake beside it was filled from another one"
    if record is None and hot.last_id == 0 and has_hits:
        return "never had a hit, and the lake beside it has hits"
    return None


def older_fault(hot: HotLogIdentity, tables: list[DeltaTable]) -> str | None:
    """Return the fault of a hot log whose batches end before those that the tables have of it."""
    offset = max((delta_table.offset(table, hot.node) for table in tables if hot.node), default=0)
    return _OLDER.format(offset, hot.last_id) if offset > hot.last_id else None


def older_message(offset: int, last_id: int) -> str:
    """Return the message for a hot log whose batches end at `last_id`, and the lake's of it at `offset`."""
    return f"the hot log {_OLDER.format(offset, last_id)}: {ADVICE}"


def register_hot_log(connection: sqlite3.Connection, root: Path) -> None:
    """Record the hot log in the lake, durably, where it is not recorded."""
    node = batches.node_id(connection)
    if node not in registry.hot_logs(root):
        registry.record_hot_log(root, HotLogRecord(node))


def ledger_from_s(hot_log: Path, root: Path) -> float:
    """Return since when (seconds since 1970) the record of imported logs is complete; 0 if it was never lost."""
    record = registry.hot_logs(root).get(read_identity(hot_log).node or "")
    return record.ledger_from_s if record else 0.0


def require_control(read_control: Callable[[], "ControlIdentity"], hot_log: Path, root: Path) -> None:
    """Raise DataIncomplete if the control database is not the one that the lake was used with. It is read last."""
    has_hits = has_files(root) or read_identity(hot_log).last_id > 0
    record = registry.control(root)
    identity = read_control()
    fault = control_fault(identity, record, has_hits)
    if fault is not None:
        raise DataIncomplete(f"{identity.name} {fault}: {ADVICE}")


def control_fault(identity: "ControlIdentity", record: ControlRecord | None, has_hits: bool) -> str | None:
    """Return what is wrong with a control database, as the rest of a sentence that begins with its name.

    One that 0.1.0 wrote has no id: it is accepted if it has projects, so that an older backup can be restored.
    """
    if not identity.has_projects and identity.database_id is None and (record is not None or has_hits):
        return "is missing or empty, and there are hits of its projects"
    if record is None:
        return "has no project, and there are hits" if has_hits and not identity.has_projects else None
    if identity.database_id not in {None, record.database_id}:
        return "is not the one that this data folder was used with"
    return None


def register_control(identity: "ControlIdentity", root: Path) -> None:
    """Record the control database in the lake, durably, where another or none is recorded."""
    assert identity.database_id is not None, "it was opened before"
    record = ControlRecord(identity.database_id)
    if registry.control(root) != record:
        registry.record_control(root, record)
