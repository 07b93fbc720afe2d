"""The data folder: creation, permissions and checks before a command uses it."""

import logging
import stat
import time
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from shlex import quote

from api.settings import Settings
from ingest.classification import agents
from ingest.hits.hit import DEDUPLICATION_DAYS
from ingest.hotlog import beacon_shares, deduplication, ledger_store, new_values
from warehouse import disk
from warehouse.control import database, store_secret
from warehouse.database.url import name_of, sqlite_name
from warehouse.errors import AgentsDamaged, NoData
from warehouse.folder import CONTROL, HOT_LOG, JOBS, LAKE, MOVED, RANGES, RUN, SALTS, sqlite_url
from warehouse.hotlog import batches
from warehouse.hotlog.connection import Server
from warehouse.integrity import completeness, durability
from warehouse.lake import agents_file, delta_table, readme
from warehouse.lake.lock import write_lock

LOG = logging.getLogger("readership.data")
OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO
NO_TABLES = "has no tables: start readership serve, or create a project with readership project create"
"""End of an error message, after the name of a database on a server that no command has used yet."""
OURS = frozenset((HOT_LOG, LAKE, RUN, JOBS, CONTROL, RANGES, SALTS, MOVED, ".lock", "lost+found"))
"""Names of files in a data folder; `lost+found` is in the root of each new file system."""


def prepare(settings: Settings) -> None:
    """Create the missing parts of a data folder; safe to repeat, and beside a running service.

    Raises:
        StoreTooNew: a newer release wrote a store; no store is changed.
        DataIncomplete: the hot log or the control database is missing or older than the lake; no store is changed.
        ControlUnreadable: the control database is damaged.
    """
    require_whole_control(settings)
    prepare_lake(settings)
    with _locked(settings):
        with closing(batches.connect(settings.hot_log)) as hot:
            ledger_store.prepare(hot, secret(settings), time.time)
        completeness.register_control(database.read_identity(settings.database_url), settings.lake)


def make(settings: Settings) -> None:
    """Create the folders that every command expects."""
    _make_private(settings.data)
    for each in (settings.run, settings.lake.local):
        disk.make_folder(each)


def prepare_lake(settings: Settings) -> None:
    """Create the missing parts of the hot log and the lake.

    Raises:
        StoreTooNew: a newer release wrote a store; no store is changed.
        DataIncomplete: the hot log is missing or older than the lake, or the lake lacks commits that it had.
        UnsafeStore, LakeUnreachable: see `LocalPath.require_safe`.
    """
    completeness.require_identity(settings.hot_log, settings.lake)
    delta_table.refuse_newer(settings.lake)
    batches.refuse_newer(settings.hot_log)
    settings.lake.require_safe()
    make(settings)
    with _locked(settings):
        with closing(batches.connect(settings.hot_log)) as hot:
            deduplication.create(hot)
            ledger_store.create(hot)
            beacon_shares.create(hot)
            durability.prepare(hot, settings.lake)
            completeness.require_newest(settings.hot_log, settings.lake)
            completeness.register_hot_log(hot, settings.lake)
        write_lake_files(settings)
    disk.sync(settings.data)


def remember_values(settings: Settings, now: datetime, *, is_repair: bool = False) -> None:
    """Add the values of the last seven days of the lake to the known values of beacons, if none is known or to repair.

    Without them all pages of a site would be new after an upgrade or a loss, and those above the limit have no name.
    """
    from warehouse.maintenance import recovery  # noqa: PLC0415  # DuckDB takes 0.1 s to import
    from warehouse.query import engine  # noqa: PLC0415  # the same

    since, most = now.date() - timedelta(DEDUPLICATION_DAYS), DEDUPLICATION_DAYS * settings.new_values_per_day
    spill, key = settings.run / "spill", secret(settings)
    with ExitStack() as stack:
        hot = stack.enter_context(closing(batches.connect(settings.hot_log)))
        if new_values.has_values(hot) and not is_repair:
            return
        database = stack.enter_context(closing(engine.connect(spill, recovery.VALUES_MEMORY_LIMIT)))
        try:
            for values in recovery.recent_values(settings.lake, database, since, most):
                new_values.add_values(hot, values, key)
        except engine.Error as error:  # a damaged file must not prevent that posts are stored
            LOG.warning("beacons take pages of the last days for new ones: the lake cannot be read: %s", error)


def secret(settings: Settings) -> bytes:
    """Return the secret of the store, which keys what is derived from addresses and lines. Create it if missing."""
    with closing(database.connect(settings.database_url)) as control:
        return store_secret.read(control)


def write_lake_files(settings: Settings) -> None:
    """Update the files beside the lake's tables: the AI agents and the README."""
    agents_file.write_agents(settings.lake, agents.rows())
    readme.write_readme(settings.lake)


def _make_private(folder: Path) -> None:
    """Create a folder with mode 0700, or remove the permissions of group and others from an existing one.

    A folder that also contains files of other programs, such as /tmp, keeps its mode, and a warning is logged.
    """
    disk.make_folder(folder, 0o700)
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & OTHER_USERS:
        return
    of_sqlite = (f"{HOT_LOG}-", f"{CONTROL}-", f"{SALTS}-")
    if all(path.name in OURS or path.name.startswith(of_sqlite) for path in folder.iterdir()):
        with suppress(PermissionError):  # the folder belongs to another user
            folder.chmod(mode & ~OTHER_USERS)
            return
    _warn(f"other users have access to {folder} (mode {mode:04o}); run chmod 700 {quote(str(folder))}")


@cache
def _warn(text: str) -> None:
    """Log a warning once per process, because a service creates its folders twice."""
    LOG.warning("%s", text)


def require_whole_control(settings: Settings) -> None:
    """Raise DataIncomplete if the control database is missing or empty beside hits, or is another one."""
    completeness.require_control(lambda: database.read_identity(settings.database_url), settings.hot_log, settings.lake)


def require(settings: Settings) -> None:
    """Raise NoData if the data folder has neither a hot log nor a lake nor a control database. Create nothing.

    A hot log in PostgreSQL must have tables, unless the lake was filled from it: then the tables are lost.
    """
    if isinstance(settings.hot_log, Server):
        if completeness.is_new(settings.hot_log, settings.lake):
            raise NoData(f"{settings.hot_log} {NO_TABLES}")
        return
    if not any(path.exists() for path in (settings.hot_log, settings.lake.local, settings.control)):
        raise NoData(f"there is no data in {settings.data}; name another folder with --data")


def require_agents(settings: Settings) -> None:
    """Write the file of the AI agents again if it cannot be read. A folder without the file is not changed."""
    try:
        if (settings.lake / agents_file.AGENTS_FILE).exists():
            agents_file.read(settings.lake)
    except AgentsDamaged:
        with _locked(settings):
            write_lake_files(settings)


def require_hot_log(settings: Settings) -> None:
    """Raise NoData if there is no hot log, or HotLogBehind if the hot log in PostgreSQL is lost. Create nothing."""
    require(settings)
    if isinstance(settings.hot_log, Server):
        completeness.require_identity(settings.hot_log, settings.lake)
    elif not settings.hot_log.exists():
        raise NoData(f"there is no hot log at {settings.hot_log}; restore it from the backup that the lake is from")


def require_control_database(settings: Settings) -> None:
    """Raise NoData if the control database does not exist, or DataIncomplete if its tables are lost. Create nothing."""
    if sqlite_name(settings.database_url) is None:
        identity = database.read_identity(settings.database_url)
        if identity.database_id is None and not identity.has_projects:
            require_whole_control(settings)
            raise NoData(f"{identity.name} {NO_TABLES}")
        return
    if settings.database_url == sqlite_url(settings.control):
        require(settings)
    file = Path(name_of(settings.database_url))
    if not file.exists():
        raise NoData(
            f"there is no control database at {file}; restore it from a backup, or set READERSHIP_DATABASE_URL"
        )


def _locked(settings: Settings) -> AbstractContextManager[None]:
    """Lock the folder: two processes that create a SQLite file at once get "database is locked"."""
    return write_lock(settings.data, wait_s=60)
