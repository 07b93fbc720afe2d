"""The command `serve`, and its parts that `demo` also uses."""

import logging
import socket
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import click

from api import data_folder, logs
from api.accounts import one_time_links
from api.cli.options import network
from api.server import serve, service_lock
from api.server.service_lock import ServiceLock
from api.settings import Settings
from ingest.verification import address_lists
from warehouse.control import database
from warehouse.database_errors import best_effort

LOG = logging.getLogger("readership.service")
PORT = 8000
"""Default port."""


def server_options(port: int) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of a command that serves HTTP; `port` is the default."""
    shown: dict[str, Any] = {"show_default": True}
    count, ports = click.IntRange(1, 64), click.IntRange(0, 65535)
    host_help = "Address to listen on; 0.0.0.0 or :: for all interfaces."
    options = (
        click.option("--workers", "processes", type=count, default=1, help="Number of server processes.", **shown),
        click.option("--port", type=ports, default=port, help="Port to listen on; 0 for any free port.", **shown),
        click.option("--host", default="127.0.0.1", metavar="ADDRESS", help=host_help, **shown),
    )
    return lambda command: reduce(lambda decorated, option: option(decorated), options, command)


@click.command("serve")
@server_options(PORT)
@network.reverse_dns_option
@network.key_directories_option
@click.pass_obj
def serve_(
    settings: Settings, host: str, port: int, processes: int, is_reverse_dns: bool, key_directories: str | None
) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    The service answers HTTP requests, loads the hot log into the lake, maintains the lake and runs agent jobs.
    """
    lists = address_lists.current(settings.ranges)  # first, because here an error is one line and not a traceback
    logs.configure(settings.log_level)
    settings = network.with_options(settings, is_reverse_dns, key_directories)
    serve.import_app(processes)
    lock = lock_data_folder(settings)
    listener = serve.listen(host, port)
    public = f", for visitors at {settings.base_url}" if settings.base_url else ""
    LOG.info("Readership listens at %s%s, data in %s", serve.described_url(listener), public, settings.data)
    _log_first_owner_link(settings, serve.url(listener))
    if warning := address_lists.age_warning(lists, datetime.now(UTC)):
        LOG.warning("%s; %s", warning.text(), settings.refresh_lists)
    run(settings, listener, processes, lock)


def run(settings: Settings, listener: socket.socket, processes: int, lock: ServiceLock) -> None:
    """Serve, with the URL in the run folder for links that other commands print."""
    service_lock.write_url(settings.run, serve.url(listener))
    try:
        serve.serve(settings, listener, processes, lock)
    finally:
        service_lock.delete_url(settings.run)


def _log_first_owner_link(settings: Settings, url: str) -> None:
    """Log a link that creates the first owner, if no user exists. The level is `warning`: an operator must see it."""
    token = None
    with closing(database.connect(settings.database_url)) as control, best_effort("cannot create a link for an owner"):
        token = one_time_links.create_for_first_owner(control, int(time.time()))
    if token is not None:
        link = f"{settings.base_url or url}/welcome/{token}"
        LOG.warning("The dashboard has no user yet. Create the first owner within 30 minutes: %s", link)


def lock_data_folder(settings: Settings) -> ServiceLock:
    """Lock the data folder for the service, and prepare it with the known values of beacons. Raises FolderInUse."""
    data_folder.make(settings)
    lock = service_lock.acquire(settings.data, settings.run, LOG.warning)
    click.get_current_context().call_on_close(lock.release)
    data_folder.prepare(settings)
    data_folder.remember_values(settings, datetime.now(UTC))
    return lock
