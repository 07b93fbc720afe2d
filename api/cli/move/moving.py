"""Move of the stores, which continues after an interruption.

1. The lake is copied. No process uses the copy before its last file is written: see `warehouse.move.lake`.
2. The databases are copied in one transaction. Before its commit, the record of the move is written to the data folder.
   From then on no other command uses the data folder, because the commit may be durable although its answer was lost.
   If only the lake is moved, the record is written after the copy of the lake.
3. The mark of an incomplete lake is deleted, and the record is completed.

The files of the data folder are not changed.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from api import app, data_folder  # noqa: F401  # `app` imports all modules that define tables of the control database
from api.cli.move.places import Places
from api.server import service_lock
from ingest.hotlog import deduplication, ledger_store
from warehouse import folder
from warehouse.control import database
from warehouse.database.url import name_of
from warehouse.errors import MoveRefused, NoData
from warehouse.folder import HOT_LOG, Moved
from warehouse.lake import registry
from warehouse.lake.lock import write_lock
from warehouse.move import databases, lake, tables
from warehouse.move.databases import Sources

LOCK_WAIT_S = 2.0
"""Time for which the move waits for the lock of the lake, in seconds."""
POINTS = (*lake.POINTS, "before server", "before record", "before commit", "after commit", "before end", "after record")
"""Points at which a crash leaves a different state."""


@dataclass(slots=True)
class Watch:
    """Functions that are called during a move: with its steps, and with the progress since their last call.

    `on_start` gets the number of rows and of bytes in advance. `warn` gets a message about a wait.
    """

    warn: Callable[[str], None] = lambda text: None
    on_start: Callable[[int, int], None] = lambda rows, size: None
    on_rows: Callable[[int], None] = lambda rows: None
    on_bytes: Callable[[int], None] = lambda size: None
    on_point: Callable[[str], None] = lambda point: None


@dataclass(slots=True)
class Done:
    """Result of a move: the number of copied rows by table, and the number and size in bytes of the lake's files.

    All numbers are 0 if an earlier, interrupted run had copied the stores.
    """

    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0


def move(places: Places, watch: Watch) -> Done:
    """Move the stores. The result of a repeated move is empty.

    Raises:
        FolderInUse, MoveRefused: a process uses the data folder, or the new place is not empty.
        NoData: the data folder has no hot log or no control database.
    """
    data, done = places.before.data, Done()
    if not (data / HOT_LOG).exists():
        raise NoData(f"there is no hot log at {data / HOT_LOG}; name another folder with --data")
    data_folder.make(places.before)
    lock = service_lock.acquire(data, places.before.run, watch.warn)
    try:
        earlier = folder.read_moved(data)
        _require_possible(places, earlier)
        if earlier is None or not (earlier.is_complete and places.is_recorded(earlier)):
            done = _move(places, earlier, watch)
    finally:
        lock.release()
    return done


def _require_possible(places: Places, earlier: Moved | None) -> None:
    """Raise MoveRefused if the stores were moved, or began to be moved, to other places.

    The database can be moved after the lake.
    """
    if earlier is None or places.is_recorded(earlier):
        return
    if not earlier.is_complete:
        raise MoveRefused(f"a move to {earlier.places} is not complete: name the same places")
    if earlier.database is not None or earlier.lake != places.record("", is_complete=True).lake:
        raise MoveRefused(f"the data of {places.before.data} were moved to {earlier.places}: set the new places")


def _move(places: Places, earlier: Moved | None, watch: Watch) -> Done:
    control = _control_file(places)
    if earlier is None or earlier.is_complete:  # else an interrupted move has prepared the folder, and refuses this
        stays = control is None and places.server is not None
        url = places.after.database_url if stays else places.before.database_url
        data_folder.prepare(replace(places.before, database_url=url))
    with _opened(places, control) as sources:
        (node,) = sources.hot.execute("SELECT id FROM node").fetchone()
        is_copied = _is_copied(places, earlier, node)
        done = Done() if is_copied else _copy(places, sources, node, watch)
        watch.on_point("after commit")
        if places.lake is not None:
            lake.finish(places.lake)
        watch.on_point("before end")
        folder.record_moved(places.before.data, places.record(node, is_complete=True))
        watch.on_point("after record")
        if places.server is not None:  # the salts of the folder are not moved, and nothing would destroy them
            (places.before.data / folder.SALTS).unlink(missing_ok=True)
        return done


def _copy(places: Places, sources: Sources, node: str, watch: Watch) -> Done:
    done, local = Done(), places.before.lake
    for file in sources.files():
        tables.require_known(*file)
    schema = databases.control_schema(places.after.database_url) if places.server else ""
    if places.server is not None:
        for file in sources.files():
            tables.require_accepted(*file)
        databases.rehearse(places.server, sources, schema)
    rows = sum(tables.count_rows(source, of) for source, _, of in sources.files()) if places.server else 0
    watch.on_start(rows, sum(lake.list_files(local).values()) if places.lake else 0)
    if places.lake is not None:
        places.lake.require_safe()
        copied = lake.copy(local, places.lake, node, watch.on_bytes, watch.on_point)
        done.files, done.bytes = len(copied), sum(copied.values())

    def record() -> None:
        watch.on_point("before record")
        folder.record_moved(places.before.data, places.record(node, is_complete=False))
        watch.on_point("before commit")

    if places.server is None:
        record()
    else:
        watch.on_point("before server")
        done.rows = databases.copy(places.server, sources, schema, watch.on_rows, record)
    return done


def _is_copied(places: Places, earlier: Moved | None, node: str) -> bool:
    """Return whether an interrupted move has copied all stores. Raises MoveRefused if no interrupted move did."""
    is_interrupted = earlier is not None and not earlier.is_complete
    if places.server is None:
        return is_interrupted
    if not databases.has_hot_log(places.server, node):
        return False
    if not is_interrupted:
        raise MoveRefused(
            f"{places.server.database} has this hot log from an earlier move, and may have newer hits: name an empty "
            "database"
        )
    return True


def _control_file(places: Places) -> Path | None:
    """Return the file of the control database; None if the control database stays, or was moved before.

    Raises:
        MoveRefused: the new database has the control database of another lake.
        NoData: there is no such file.
    """
    if places.server is None:
        return None
    identity = database.read_identity(places.after.database_url)
    if identity.database_id is not None:
        record = registry.control(places.before.lake)
        if record is None or record.database_id != identity.database_id:
            raise MoveRefused(
                f"{places.server.database} has the control database of another data folder: name an empty database"
            )
        return None
    file = Path(name_of(places.before.database_url))
    if not file.is_file():
        raise NoData(f"there is no control database at {file}")
    return file


@contextmanager
def _opened(places: Places, control: Path | None) -> Iterator[Sources]:
    with ExitStack() as stack:
        hot = stack.enter_context(databases.opened(places.before.data / HOT_LOG))
        opened = None if control is None else stack.enter_context(databases.opened(control))
        stack.enter_context(write_lock(places.before.lake.local, LOCK_WAIT_S))
        yield Sources(hot, opened, (deduplication.STATEMENTS, ledger_store.STATEMENTS))
