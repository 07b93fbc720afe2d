"""A data folder with all that the service and the commands need."""

from contextlib import AbstractContextManager, closing

from api.rate_limit import RateLimit
from api.settings import Settings
from ingest import agents, ledger, seen
from warehouse import agents_file, batches, lake


def prepare(settings: Settings) -> None:
    """Make what the service needs in its data folder; safe to repeat, and beside a running service."""
    from warehouse import control  # noqa: PLC0415  # SQLAlchemy: see `warehouse.standing`

    prepare_lake(settings)
    with _locked(settings):
        control.connect(settings.database_url).dispose()
        RateLimit(settings.limits, settings.beacons_per_minute, settings.run_secret).close()


def prepare_lake(settings: Settings) -> None:
    """Make what hits are stored in."""
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (settings.run, settings.lake):
        each.mkdir(exist_ok=True)
    with _locked(settings):
        lake.create(settings.lake)
        with closing(batches.connect(settings.hot_log)) as hot:
            seen.create(hot)
            ledger.create(hot)
        agents_file.write_agents(settings.lake, agents.rows())


def _locked(settings: Settings) -> AbstractContextManager[None]:
    """Two that make a SQLite file at one time get "database is locked"."""
    return lake.locked(settings.data, wait_s=60)
