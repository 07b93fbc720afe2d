"""The command `retention`: remove hits past the retention now."""

import time
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import click

from api import data_folder
from api.cli.output import show
from api.settings import Settings
from warehouse import clock
from warehouse.hotlog import batches
from warehouse.maintenance.erase import erase_before, first_trusted_s
from warehouse.maintenance.load import load
from warehouse.plural import counted
from warehouse.query import engine

LOCK_WAIT_S = 300.0


@click.command()
@click.option("--yes", is_flag=True, help="Confirm that the clock is right, although it jumped.")
@click.pass_obj
def retention(settings: Settings, yes: bool) -> None:
    """Remove hits that are older than READERSHIP_RETENTION_DAYS now, while the service runs.

    A service does this each hour, but removes nothing for a day after the clock jumped by more than a week.
    """
    days = settings.retention_days
    if not (days or yes):
        raise click.ClickException("READERSHIP_RETENTION_DAYS is not set: hits of any age are stored")
    data_folder.require(settings)
    data_folder.prepare(settings)
    now = datetime.fromtimestamp(time.time(), UTC)
    with closing(batches.connect(settings.hot_log)) as hot, closing(engine.connect(settings.run / "spill")) as database:
        if yes:
            clock.record(settings.lake, clock.Clock(now.timestamp()))
        else:
            load(hot, settings.lake, LOCK_WAIT_S)  # the clock of a new folder is compared with its newest hit
            newest_s = partial(first_trusted_s, settings.lake, database, now.timestamp())
            if not clock.observe(settings.lake, now.timestamp(), newest_s).is_trusted:
                raise click.ClickException(str(clock.warning(settings.lake)))
        removed = erase_before(hot, settings.lake, now.date(), days, LOCK_WAIT_S) if days else 0
    show({"removed": removed}, f"{counted(removed, 'hit')} removed")
