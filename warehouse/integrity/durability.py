"""Durability: nothing is deleted before its replacement is synced, and a loss of acknowledged rows is an error.

The hot log records how far each Delta table is synced: its version, and the last hot batch that it has. A writer first
syncs what a killed process left unsynced after that version (`durable_writes`). A reader compares: a table below its
record raises DataIncomplete, instead of a smaller number.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deltalake import DeltaTable

from warehouse.errors import LakeBusy, TableIncomplete
from warehouse.hotlog import batches, synced
from warehouse.hotlog.schema_steps import has_table
from warehouse.hotlog.synced import Synced
from warehouse.lake import delta_log, delta_table, log_repair
from warehouse.lake.lock import write_lock
from warehouse.transaction import transaction


@contextmanager
def durable_writes(hot: sqlite3.Connection, root: Path, wait_s: float) -> Iterator[None]:
    """Lock the lake for writing, and record at the end what `warehouse.lake.delta_table` committed and synced within.

    Raises:
        LakeBusy: see `write_lock`.
        DataIncomplete: see `require_commits`.
    """
    with write_lock(root, wait_s):
        _complete(hot, root)
        yield
        _record_versions(hot, root)


def prepare(hot: sqlite3.Connection, root: Path) -> None:
    """Sync or set aside what a killed process left unsynced, and create the tables that are missing.

    To be called before a table is read: after a power loss it may have a commit that was never acknowledged.

    Raises:
        DataIncomplete: see `require_commits` and `delta_table.open_table`.
    """
    require_commits(hot, root)
    with suppress(LakeBusy), write_lock(root, wait_s=0):  # whoever has the lock has done the same
        _complete(hot, root)
    delta_table.create(root)


def require_commits(hot: sqlite3.Connection, root: Path) -> None:
    """Make sure that each table's log has all commits up to the recorded version. No table is opened.

    Raises:
        DataIncomplete: naming the table and what is missing.
    """
    for name, known in synced.recorded(hot).items():
        if fault := _log_fault(root / name, known):
            raise log_repair.incomplete(root / name, fault)


def require_synced(table: Path, found: Synced, known: Synced | None) -> None:
    """Make sure that a table has what was recorded. `found` is the state of a handle, opened after `known` was read.

    Raises:
        DataIncomplete: naming the table, and the version and hot batch found and recorded.
    """
    if fault := _below(found, known):
        raise log_repair.incomplete(table, fault)


def find_losses(hot: sqlite3.Connection, root: Path) -> dict[str, str]:
    """Return what each table lacks of what was stored, by the table's name. Empty if nothing is missing.

    The hot log may still have the schema of an older release.
    """
    recorded = synced.recorded(hot) if has_table(hot, synced.NAME) else {}
    node = batches.node_id(hot)
    unrecorded = Synced(0, batches.deleted_through(hot))
    found: dict[str, str | None] = {}
    for spec in delta_table.TABLES:
        known = recorded.get(spec.name, unrecorded)
        found[spec.name] = _log_fault(root / spec.name, known) or log_repair.diagnosis(root / spec.name)
        if found[spec.name] is None:
            found[spec.name] = _opened_fault(root, spec, node, known)
    return {name: fault for name, fault in found.items() if fault is not None}


def _opened_fault(root: Path, spec: delta_table.Spec, node: str, known: Synced) -> str | None:
    """Return what a table lacks whose log has no fault in itself, or why it cannot be opened all the same."""
    try:
        table = delta_table.open_table(root, spec)
    except TableIncomplete as error:
        return error.fault
    return _below(Synced(table.version(), delta_table.offset(table, node)), known)


def find_broken_logs(root: Path) -> dict[str, str]:
    """Return what is missing or broken in the log of each table, by the table's name."""
    faults = {spec.name: log_repair.diagnosis(root / spec.name) for spec in delta_table.TABLES}
    return {name: fault for name, fault in faults.items() if fault is not None}


def accept_losses(hot: sqlite3.Connection, root: Path, wait_s: float) -> None:
    """Go on with the tables as they are: create those that are missing, and record what the others have now.

    The first broken commit of a table and all later ones are set aside; what only they added is lost.

    Raises:
        LakeBusy: see `write_lock`.
        DataIncomplete: a table has files, but no commit or checkpoint of its log can be used.
    """
    with write_lock(root, wait_s):
        try:
            for spec in delta_table.TABLES:
                log_repair.set_aside_broken(root / spec.name)
            delta_table.create(root)
        except TableIncomplete as error:
            raise _useless(error.table, error.fault) from None
        node = batches.node_id(hot)
        found = {spec.name: _sync_all(delta_table.open_table(root, spec), spec, node) for spec in delta_table.TABLES}
        with transaction(hot):
            synced.forget(hot)
            synced.record(hot, found)


def _useless(table: Path, fault: str) -> TableIncomplete:
    """Return the error for a table whose loss is accepted, and of whose log nothing can be used."""
    return TableIncomplete(
        table,
        fault,
        f", so nothing of its log can be used. Move {table} out of the data folder, then run"
        " readership recover --accept-loss again: it creates the table empty",
    )


def _complete(hot: sqlite3.Connection, root: Path) -> None:
    """Sync what was committed after the recorded versions, or all of a table without a record, and record it."""
    require_commits(hot, root)
    recorded, node = synced.recorded(hot), batches.node_id(hot)
    for spec in delta_table.TABLES:
        known, newest = recorded.get(spec.name), delta_log.read(root / spec.name).newest
        if known is None and newest >= 0:
            found = _sync_all(delta_table.open_table(root, spec), spec, node)
            require_synced(root / spec.name, found, Synced(0, batches.deleted_through(hot)))
            synced.record(hot, {spec.name: found})
        elif known is not None and newest > known.version:
            log_repair.sync_after(root / spec.name, known.version)
    _record_versions(hot, root)


def _record_versions(hot: sqlite3.Connection, root: Path) -> None:
    """Record the newest versions, all of whose commits are synced. `load.bring_up` records the hot batches."""
    versions = {spec.name: Synced(delta_log.read(root / spec.name).newest, 0) for spec in delta_table.TABLES}
    with transaction(hot):
        synced.record(hot, {name: table for name, table in versions.items() if table.version >= 0})


def _sync_all(table: DeltaTable, spec: delta_table.Spec, node: str) -> Synced:
    state = delta_table.state(table, spec, node)
    delta_log.sync_all(delta_log.folder(table), [Path(file.path) for file in state.files])
    return Synced(state.version, state.offset)


def _log_fault(table: Path, known: Synced) -> str | None:
    log = delta_log.read(table)
    if log.newest >= known.version:
        return log.fault(known.version)
    found = f"is at version {log.newest}" if log.newest >= 0 else f"has no log in {table / delta_log.FOLDER}"
    return f"it {found}, and was stored up to version {known.version}"


def _below(found: Synced, known: Synced | None) -> str | None:
    if known is None or (found.version >= known.version and found.last_batch >= known.last_batch):
        return None
    return (
        f"it is at version {found.version} and has hot batches up to {found.last_batch}, and was stored up to"
        f" version {known.version} and batch {known.last_batch}"
    )
