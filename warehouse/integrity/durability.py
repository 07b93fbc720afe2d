"""Durability: nothing is deleted before its replacement is synced, and a loss of acknowledged rows is an error.

The hot log records how far each Delta table is synced: its version, and the last hot batch that it has. A writer
(`durable_writes`) first syncs the commits after that version, which a killed process may have left unsynced. A reader
compares: a table below its record is an error, and never a smaller count.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from warehouse.database.statements import has_table
from warehouse.database.transaction import transaction
from warehouse.errors import LakeBusy, TableIncomplete
from warehouse.hotlog import batches, loads
from warehouse.hotlog.connection import STATEMENTS, HotConnection
from warehouse.hotlog.loads import Synced
from warehouse.integrity import older_errors
from warehouse.integrity.lake_lock import lake_lock
from warehouse.lake import delta_log, delta_table, log_repair, registry, staging
from warehouse.lake.delta_log import Log
from warehouse.lake.roots import Root
from warehouse.tables import DAILY_ERRORS_TABLE, TABLES, Spec


@contextmanager
def durable_writes(hot: HotConnection, root: Root, wait_s: float) -> Iterator[None]:
    """Lock the lake for writing, and record the synced versions of its tables when the block ends.

    Raises:
        LakeBusy: see `lake_lock.lake_lock`; or a commit of the block was refused, because another node has written to
            the same table since this node, which was paused, lost the lake's lock.
        TableIncomplete: see `require_commits`.
    """
    with lake_lock(hot, root, wait_s):
        _complete(hot, root)
        try:
            yield
        except CommitFailedError as error:
            raise LakeBusy(
                "another node wrote to the same table: the rest of the work is left for the next run"
            ) from error
        _record_versions(hot, {spec.name: delta_log.read(root / spec.name) for spec in TABLES})


def prepare(hot: HotConnection, root: Root) -> None:
    """Sync or set aside the commits that a killed process left unsynced, and create missing tables.

    Call this before a table is read: after a power loss a table may have a commit that was never acknowledged.

    Raises:
        TableIncomplete: see `require_commits` and `delta_table.open_table`.
    """
    require_commits(hot, root)
    with suppress(LakeBusy), lake_lock(hot, root, wait_s=0):  # the process that has the lock has done the same
        _complete(hot, root)
    create_tables(hot, root)


def create_tables(hot: HotConnection, root: Root, *, is_locked: bool = False) -> None:
    """Create missing tables, and upgrade the others.

    A table that an older release did not have begins after the batches that `hits` has, and lacks their rows. A table
    that was lost begins with the first batch that is in the hot log. `is_locked`: see `delta_table.create`.
    """
    new = {spec.name for spec in TABLES} - set(loads.synced(hot))
    nodes = {batches.node_id(hot), *registry.hot_logs(root)} if new else set()
    delta_table.create(root, is_locked=is_locked, nodes=dict.fromkeys(new, nodes))
    if DAILY_ERRORS_TABLE.name in root.folders():
        with nullcontext() if is_locked else lake_lock(hot, root, delta_table.MIGRATION_WAIT_S):
            older_errors.move(hot, root)


def require_commits(hot: HotConnection, root: Root) -> None:
    """Raise TableIncomplete if a log lacks a commit up to the recorded version of its table. Opens no table."""
    recorded = loads.synced(hot)  # before the logs, whose versions only rise
    names = [spec.name for spec in TABLES if spec.name in recorded]
    _require_commits(recorded, {name: delta_log.read(root / name) for name in names})


def _require_commits(recorded: Mapping[str, Synced], logs: Mapping[str, Log]) -> None:
    for name, log in logs.items():
        if name in recorded and (fault := _log_fault(log, recorded[name])):
            raise log_repair.incomplete(log.folder, fault)


def require_synced(table: Root, actual: Synced, known: Synced | None) -> None:
    """Raise TableIncomplete if the state of a table, opened after `known` was read, is below the record `known`."""
    if fault := _below(actual, known):
        raise log_repair.incomplete(table, fault)


def find_losses(hot: HotConnection, root: Root) -> dict[str, str]:
    """Return the fault of each table that lacks stored data, by the table's name. Empty if nothing is missing.

    The hot log may have the schema of an older release.
    """
    recorded = loads.synced(hot) if has_table(hot, "synced_tables") else {}
    node = batches.node_id(hot)
    unrecorded = Synced(0, batches.deleted_through(hot))
    faults: dict[str, str | None] = {}
    for spec in TABLES:
        if spec.name not in recorded and spec not in delta_table.specs(root):
            continue
        known = recorded.get(spec.name, unrecorded)
        faults[spec.name] = _log_fault(delta_log.read(root / spec.name), known) or log_repair.diagnosis(
            root / spec.name
        )
        if faults[spec.name] is None:
            faults[spec.name] = _opened_fault(root, spec, node, known)
    return {name: fault for name, fault in faults.items() if fault is not None}


def _opened_fault(root: Root, spec: Spec, node: str, known: Synced) -> str | None:
    """Return why a table with a complete log cannot be opened, or that it is below its record; None without a fault."""
    try:
        table = delta_table.open_table(root, spec)
    except TableIncomplete as error:
        return error.fault
    return _below(Synced(table.version(), delta_table.offset(table, node)), known)


def find_broken_logs(root: Root) -> dict[str, str]:
    """Return the fault of each table whose log has a missing or broken file, by the table's name."""
    faults = {spec.name: log_repair.diagnosis(root / spec.name) for spec in delta_table.specs(root)}
    return {name: fault for name, fault in faults.items() if fault is not None}


def accept_losses(hot: HotConnection, root: Root, wait_s: float) -> None:
    """Accept the tables as they are: create missing ones, and record the versions of the others.

    The first broken commit of a table and all later ones are set aside; rows that only they added are lost, except
    those in loaded batches that the hot log still has. These batches wait to be loaded again.

    Raises:
        LakeBusy: see `lake_lock.lake_lock`.
        TableIncomplete: no commit or checkpoint of a table's log can be used.
    """
    with lake_lock(hot, root, wait_s):
        try:
            for spec in TABLES:
                log_repair.set_aside_broken(root / spec.name)
            create_tables(hot, root, is_locked=True)
        except TableIncomplete as error:
            advice = (
                f", so nothing of its log can be used. Move {error.table} out of the data folder, then run"
                " readership recover --accept-loss again: it creates the table empty"
            )
            raise TableIncomplete(error.table, error.fault, advice) from None
        node = batches.node_id(hot)
        states = {spec.name: _sync_all(delta_table.open_table(root, spec), spec, node) for spec in TABLES}
        offset = min(state.last_batch for state in states.values())
        lost = _last_without_files(hot, root, offset)
        if lost > offset:
            batches.delete_through(hot, lost)
        with transaction(hot):
            STATEMENTS.run(hot, "FORGET_SYNCED")
            loads.record_synced(hot, states)
            loads.replace_all(hot, max(offset, lost))
            loads.revoke_moments(hot)  # versions that were set aside are used again


def _last_without_files(hot: HotConnection, root: Root, offset: int) -> int:
    """Return the last loaded batch above `offset` whose staged files are missing; 0 without one."""
    loaded = loads.loaded_through(hot)
    return max(
        (
            id
            for id, staged in batches.staged_above(hot, offset)
            if id <= loaded and any(staging.find_missing(root, spec, staged) for spec in TABLES)
        ),
        default=0,
    )


def _complete(hot: HotConnection, root: Root) -> None:
    """Sync and record the commits after the recorded versions, or all files of a table without a record."""
    recorded, node = loads.synced(hot), batches.node_id(hot)
    logs = {spec.name: delta_log.read(root / spec.name) for spec in TABLES}
    _require_commits(recorded, logs)
    for spec in TABLES:
        known, newest = recorded.get(spec.name), logs[spec.name].newest
        if known is None and newest >= 0:
            state = _sync_all(delta_table.open_table(root, spec), spec, node)
            require_synced(root / spec.name, state, Synced(0, batches.deleted_through(hot)))
            loads.record_synced(hot, {spec.name: state})
        elif known is not None and newest > known.version:
            log_repair.sync_after(root / spec.name, known.version)
    _record_versions(hot, logs)


def _record_versions(hot: HotConnection, logs: Mapping[str, Log]) -> None:
    """Record the newest versions, all of whose commits are synced. `catch_up` records the hot batches."""
    with transaction(hot):
        loads.record_synced(hot, {name: Synced(log.newest, 0) for name, log in logs.items() if log.newest >= 0})


def _sync_all(table: DeltaTable, spec: Spec, node: str) -> Synced:
    state = delta_table.state(table, spec, node)
    folder = delta_log.folder(table)
    log = (folder / delta_log.FOLDER / name for name, _ in (folder / delta_log.FOLDER).files())
    folder.parent.sync(chain((file.path for file in state.files), log))
    return Synced(state.version, state.offset)


def _log_fault(log: Log, known: Synced) -> str | None:
    """Return the fault of a log that lacks a commit up to the recorded version; None if it is complete."""
    if log.newest >= known.version:
        return log.fault(known.version)
    newest = f"is at version {log.newest}" if log.newest >= 0 else f"has no log in {log.folder / delta_log.FOLDER}"
    return f"it {newest}, and was stored up to version {known.version}"


def _below(actual: Synced, known: Synced | None) -> str | None:
    """Return the fault of a table whose version or last hot batch is lower than recorded; otherwise None."""
    if known is None or (actual.version >= known.version and actual.last_batch >= known.last_batch):
        return None
    return (
        f"it is at version {actual.version} and has hot batches up to {actual.last_batch}, and was stored up to"
        f" version {known.version} and batch {known.last_batch}"
    )
