"""Comparison of the hot log and the control database with the lake, which finds a missing or older one.

A count includes the hits in the lake and in the hot log. With a missing or older hot log, counts would be too small and
no error would show it. New hits would get batch ids that the lake already has, and would never be loaded.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from warehouse.database.statements import has_table
from warehouse.database.transaction import BUSY_TIMEOUT_S
from warehouse.database_errors import is_damage
from warehouse.errors import DataIncomplete, HotLogBehind
from warehouse.hotlog import batches, loads, postgresql
from warehouse.hotlog.connection import STATEMENTS, HotConnection, HotLogPlace, Server
from warehouse.lake import delta_table, registry
from warehouse.lake.registry import ControlRecord, HotLogRecord
from warehouse.lake.roots import Root
from warehouse.tables import HITS_TABLE, TABLES

if TYPE_CHECKING:
    from warehouse.control.database import ControlIdentity

ADVICE = (
    "restore the copy that is as new as the lake; without one, readership recover lists what is lost and how to go on"
)
_OTHER_LAKE = (
    "belongs to another lake: all nodes with one database must have the same READERSHIP_LAKE or the same folder; if "
    "it is the same, the lake is lost: restore it from a backup"
)
_OLDER = "is older than the lake, which has its batches up to {}; its own end at {}"


@dataclass(frozen=True, slots=True)
class HotLogIdentity:
    """Identity of a hot log: its node id, None without a complete file, and the highest batch id ever used."""

    node: str | None
    last_id: int = 0
    has_lake: bool = False
    """Whether a hot log in PostgreSQL has recorded the tables of a lake."""


def read_identity(hot_log: HotLogPlace) -> HotLogIdentity:
    """Return the identity of the hot log. Creates nothing, not even tables. Raises DataIncomplete if it is damaged."""
    if isinstance(hot_log, Server):
        with closing(postgresql.connect(hot_log, create=False)) as connection:
            return _identity(connection)
    if not hot_log.is_file() or hot_log.stat().st_size == 0:
        return HotLogIdentity(None)
    with naming_damage(hot_log):
        try:
            with closing(sqlite3.connect(hot_log, timeout=BUSY_TIMEOUT_S)) as file:
                return _identity(file)
        except (UnicodeDecodeError, TypeError):  # a name is no text, or a number is missing
            raise _damaged(hot_log, "its tables are damaged") from None


def require_whole(hot_log: HotLogPlace) -> None:
    """Raise DataIncomplete if a page of the hot log is damaged. Reads the whole file; a missing file is not damaged.

    PostgreSQL checks its pages by itself.
    """
    if isinstance(hot_log, Server) or read_identity(hot_log).node is None:
        return
    with naming_damage(hot_log), closing(sqlite3.connect(hot_log, timeout=BUSY_TIMEOUT_S)) as connection:
        result = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if result != "ok":
        raise _damaged(hot_log, " ".join(result.split()))


@contextmanager
def naming_damage(hot_log: HotLogPlace) -> Iterator[None]:
    """Raise DataIncomplete, with the name of the file, where SQLite finds in the block that the hot log is damaged."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise _damaged(hot_log, str(error)) from None


def _damaged(hot_log: HotLogPlace, reason: str) -> DataIncomplete:
    return DataIncomplete(
        f"{hot_log} cannot be read ({reason}): restore it from a copy that is as new as the lake; without one, move "
        "it out of the folder and run readership recover"
    )


def _identity(connection: HotConnection) -> HotLogIdentity:
    row = STATEMENTS.run(connection, "NODE_ID").fetchone() if has_table(connection, "node") else None
    if row is None:
        return HotLogIdentity(None)
    has_lake = not isinstance(connection, sqlite3.Connection) and bool(loads.synced(connection))
    return HotLogIdentity(row[0], batches.last_id(connection), has_lake)


def open_tables(root: Root) -> list[DeltaTable]:
    """Open those tables of the lake that exist."""
    specs = [spec for spec in TABLES if delta_table.is_table(root / spec.name)]
    return [delta_table.open_table(root, spec) for spec in specs]


def has_files(root: Root) -> bool:
    """Return whether a table has a Parquet file. Opens no table, because its log may need repair after a power loss."""
    return any(name.endswith(".parquet") for spec in TABLES for name, _ in (root / spec.name).files())


def require_identity(hot_log: HotLogPlace, root: Root) -> None:
    """Raise HotLogBehind if the hot log is missing, or is not registered in a lake that has hits.

    The files and the records of the lake are read first. In the other order, another process could create the hot log
    and fill the lake in between, and the hot log would seem to be missing. The log of `hits` is read last: another node
    could create the tables and record them in the hot log in between, and the lake would seem to be lost.
    """
    has_hits, records = has_files(root), registry.hot_logs(root)
    identity = read_identity(hot_log)
    if identity.has_lake and not delta_table.is_table(root / HITS_TABLE.name):
        raise HotLogBehind(f"{hot_log} {_OTHER_LAKE}")
    _raise_for(hot_log, identity_fault(identity, records, has_hits))


def is_new(hot_log: HotLogPlace, root: Root) -> bool:
    """Return whether the hot log does not exist, and its lake was not filled from one, so that nothing is lost."""
    if read_identity(hot_log).node is not None:
        return False
    return identity_fault(HotLogIdentity(None), registry.hot_logs(root), has_files(root)) is None


def require_newest(hot_log: HotLogPlace, root: Root, tables: list[DeltaTable] | None = None) -> None:
    """Raise HotLogBehind if the hot log is older than the lake. `tables` are the lake's tables, if they are open."""
    opened = open_tables(root) if tables is None else tables
    _raise_for(hot_log, older_fault(read_identity(hot_log), opened))


def _raise_for(hot_log: HotLogPlace, fault: str | None) -> None:
    if fault is not None:
        raise HotLogBehind(f"{hot_log} {fault}: {ADVICE}")


def identity_fault(hot: HotLogIdentity, records: dict[str, HotLogRecord], has_hits: bool) -> str | None:
    """Return the fault of a hot log's identity, as the rest of a sentence that begins with its path, or None.

    A lake without records was last used by 0.1.0: only a hot log that never had a batch is a fault there.
    """
    if hot.node is None:
        return "is missing or empty, and the lake beside it has hits" if records or has_hits else None
    record = records.get(hot.node)
    if record is not None and record.is_given_up:
        return "was replaced by another hot log when its loss was accepted"
    if record is None and records:
        return "is new, and the lake beside it was filled from another one"
    if record is None and hot.last_id == 0 and has_hits:
        return "never had a hit, and the lake beside it has hits"
    return None


def older_fault(hot: HotLogIdentity, tables: list[DeltaTable]) -> str | None:
    """Return the fault of a hot log whose batches end before its offset in a table; None without a fault."""
    offset = max((delta_table.offset(table, hot.node) for table in tables if hot.node), default=0)
    return _OLDER.format(offset, hot.last_id) if offset > hot.last_id else None


def older_message(offset: int, last_id: int) -> str:
    """Return the message for a hot log whose last batch is `last_id`, while the lake has its batches up to `offset`."""
    return f"the hot log {_OLDER.format(offset, last_id)}: {ADVICE}"


def register_hot_log(connection: HotConnection, root: Root) -> None:
    """Register the hot log in the lake, and sync the record, unless it is registered."""
    node = batches.node_id(connection)
    if node not in registry.hot_logs(root):
        registry.record_hot_log(root, HotLogRecord(node))


def ledger_from_s(hot_log: HotLogPlace, root: Root) -> float:
    """Return the time (seconds since 1970) since which the record of imported logs is complete; 0 if never lost."""
    record = registry.hot_logs(root).get(read_identity(hot_log).node or "")
    return record.ledger_from_s if record else 0.0


def require_control(read_control: Callable[[], "ControlIdentity"], hot_log: HotLogPlace, root: Root) -> None:
    """Raise DataIncomplete if the control database is not the one that the lake was used with.

    `read_control` is called after the lake is read: see `require_identity`.
    """
    has_hits = has_files(root) or read_identity(hot_log).last_id > 0
    record = registry.control(root)
    identity = read_control()
    fault = control_fault(identity, record, has_hits)
    if fault is not None:
        raise DataIncomplete(f"{identity.name} {fault}: {ADVICE}")


def control_fault(identity: "ControlIdentity", record: ControlRecord | None, has_hits: bool) -> str | None:
    """Return the fault of a control database, as the rest of a sentence that begins with its name, or None.

    A database of 0.1.0 has no id. It is accepted if it has projects, so that an older backup can be restored.
    """
    if not identity.has_projects and identity.database_id is None and (record is not None or has_hits):
        return "is missing or empty, and there are hits of its projects"
    if record is None:
        return "has no project, and there are hits" if has_hits and not identity.has_projects else None
    if identity.database_id not in {None, record.database_id}:
        return "is not the one that this data folder was used with"
    return None


def register_control(identity: "ControlIdentity", root: Root) -> None:
    """Register the control database in the lake, and sync the record, unless it is registered."""
    assert identity.database_id is not None, "the database was opened before, which gave it an id"
    record = ControlRecord(identity.database_id)
    if registry.control(root) != record:
        registry.record_control(root, record)
