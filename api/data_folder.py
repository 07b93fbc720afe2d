"""A data folder with all that the service and the commands need."""

from contextlib import AbstractContextManager, closing
from pathlib import Path

from api.rate_limit import RateLimit
from api.settings import Settings
from ingest import agents, ledger, seen
from warehouse import agents_file, batches, lake
from warehouse.errors import NoData
from warehouse.folder import sqlite_url


def prepare(settings: Settings) -> None:
    """Make what the service needs in its data folder; safe to repeat, and beside a running service."""
    from warehouse import control  # noqa: PLC0415  # SQLAlchemy: see `warehouse.standing`

    control.refuse_newer(settings.database_url)
    prepare_lake(settings)
    with _locked(settings):
        control.connect(settings.database_url).dispose()
        RateLimit(settings.limits, settings.beacons_per_minute, settings.run_secret).close()


def make(settings: Settings) -> None:
    """Make the folders that every command expects."""
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (settings.run, settings.lake):
        each.mkdir(exist_ok=True)


def prepare_lake(settings: Settings) -> None:
    """Make what hits are stored in.

    Raises:
        StoreTooNew: a newer release wrote a store; no store is changed.
    """
    lake.refuse_newer(settings.lake)
    batches.refuse_newer(settings.hot_log)
    make(settings)
    with _locked(settings):
        lake.create(settings.lake)
        with closing(batches.connect(settings.hot_log)) as hot:
            seen.create(hot)
            ledger.create(hot)
        agents_file.write_agents(settings.lake, agents.rows())


def require(settings: Settings) -> None:
    """Raise NoData if the data folder has neither a hot log nor a lake nor a control database. Create nothing."""
    if not any(path.exists() for path in (settings.hot_log, settings.lake, settings.control)):
        raise NoData(f"there is no data in {settings.data}; name another folder with --data")


def require_hot_log(settings: Settings) -> None:
    """Raise NoData if there is no hot log. Create nothing."""
    require(settings)
    if not settings.hot_log.exists():
        raise NoData(f"there is no hot log at {settings.hot_log}; restore it from the backup that the lake is from")


def require_control_database(settings: Settings) -> None:
    """Raise NoData if the control database is a file that does not exist. Create nothing."""
    file = settings.control
    if settings.database_url == sqlite_url(file):
        require(settings)
    else:
        import sqlalchemy as sa  # noqa: PLC0415  # see `warehouse.standing`

        url = sa.make_url(settings.database_url)
        if url.get_backend_name() != "sqlite" or not url.database:
            return
        file = Path(url.database)
    if not file.exists():
        raise NoData(f"there is no control database at {file}; restore it from a backup, or name another")


def _locked(settings: Settings) -> AbstractContextManager[None]:
    """Two that make a SQLite file at one time get "database is locked"."""
    return lake.locked(settings.data, wait_s=60)
