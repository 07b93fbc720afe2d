"""The command `recover`, for a data folder that lost a store or part of a table."""

import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import click

from api import data_folder
from api.cli.output import ERR, LOCK_WAIT_S, rows_format, show_rows, table
from api.errors import FolderInUse
from api.server import service_lock
from api.settings import Settings
from ingest.hotlog import deduplication, ledger_store
from warehouse.hotlog import batches
from warehouse.hotlog.connection import Server
from warehouse.hotlog.postgresql import count_other_clients
from warehouse.integrity import durability
from warehouse.maintenance import recovery
from warehouse.maintenance.load import load
from warehouse.maintenance.recovery import Loss
from warehouse.plural import counted
from warehouse.query import engine
from warehouse.tables import TABLES

CLIENTS_END_S = 2.0
"""Maximum time for which the command waits for other processes to end, in seconds."""
POLL_S = 0.1
"""Time between two counts of other processes, in seconds."""


@click.command("recover")
@click.option("--accept-loss", is_flag=True, help="Continue without the listed data.")
@rows_format
@click.pass_obj
def recover(settings: Settings, accept_loss: bool, form: str | None) -> None:
    """List lost data after a store was lost or damaged.

    A store is the hot log, the control database or a table of the lake. A store that is older than the others counts as
    damaged. Without --accept-loss nothing is changed. Before --accept-loss, stop the service on all nodes, restore the
    newest backup of each store, and copy the data folder.
    """
    data_folder.require(settings)
    losses = recovery.losses(settings.hot_log, settings.lake, settings.database_url)
    if not losses:
        show_rows([], "nothing is lost", form)
        return
    rows = ((f"{loss.store} {loss.fault}", loss.lost, loss.accepting) for loss in losses)
    show_rows(losses, table(("fault", "lost", "what --accept-loss does"), rows), form)
    if not accept_loss:
        advice = f"to go on without the lost data, run {settings.command} recover --accept-loss"
        ERR.print(f"nothing was changed; {advice}", soft_wrap=True, markup=False)
        return
    data_folder.make(settings)
    lock = service_lock.acquire(settings.data, settings.run, lambda text: ERR.print(text, soft_wrap=True))
    click.get_current_context().call_on_close(lock.release)
    _require_alone(settings)
    _accept(settings, losses)
    commands = f"{settings.command} recover again, then {settings.command} doctor"
    ERR.print(f"accepted; next: run {commands}", soft_wrap=True, markup=False)


def _require_alone(settings: Settings) -> None:
    """Raise FolderInUse if a service, worker or command of any node is connected to the hot log in PostgreSQL.

    The posts of a running node would get batch ids that the lake already has, and would never be loaded.
    """
    if not isinstance(settings.hot_log, Server):
        return
    deadline = time.monotonic() + CLIENTS_END_S
    while (clients := count_other_clients(settings.hot_log)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    if clients:
        raise FolderInUse(
            f"{counted(clients, 'connection')} of other processes to {settings.hot_log}: stop the services, workers and"
            " imports of all nodes, then try again"
        )


def _accept(settings: Settings, losses: Sequence[Loss]) -> None:
    """Accept the losses of the tables, or else those of the hot log and the control database."""
    stores = {loss.store for loss in losses}
    if stores & {str(settings.lake / spec.name) for spec in TABLES}:
        with closing(batches.connect(settings.hot_log)) as hot:
            durability.accept_losses(hot, settings.lake, LOCK_WAIT_S)
        data_folder.write_lake_files(settings)
        return
    if str(settings.hot_log) in stores:
        _accept_hot_log(settings)
    if stores - {str(settings.hot_log)}:
        recovery.accept_control(settings.database_url, settings.lake)
    data_folder.remember_values(settings, datetime.now(UTC), is_repair=True)


def _accept_hot_log(settings: Settings) -> None:
    """Create or repair the hot log, with the recent event ids of the lake, and load it."""
    now = datetime.now(UTC)
    with closing(batches.connect(settings.hot_log)) as hot, closing(engine.connect(settings.run / "spill")) as database:
        deduplication.create(hot)
        ledger_store.create(hot)
        for ids in recovery.event_ids(settings.lake, database, now - timedelta(seconds=deduplication.REMEMBERED_S)):
            deduplication.add_event_ids(hot, ids)
        with durability.durable_writes(hot, settings.lake, LOCK_WAIT_S):
            recovery.accept_hot_log(hot, settings.lake, database, now)
        load(hot, settings.lake, LOCK_WAIT_S)
