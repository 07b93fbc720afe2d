"""The command `worker`: a service without HTTP."""

import logging
import signal
import time

import click
from prometheus_client import start_http_server

from agent.worker.worker import Worker
from api import app, data_folder
from api.control_database import opened
from api.errors import AddressInUse
from api.http import access_log
from api.maintenance import Maintenance
from api.settings import Settings

LOOK_S = 0.2
LOG = logging.getLogger("readership.service")


@click.command()
@click.option("--metrics-port", type=click.IntRange(1, 65_535), help="Where this machine finds what it counts.")
@click.pass_obj
def worker(settings: Settings, metrics_port: int | None) -> None:
    """Load the hot log, keep the lake in order and work on agent jobs, without HTTP, until SIGTERM."""
    access_log.set_up(settings.log_level)
    data_folder.prepare(settings)
    if metrics_port is not None:
        _show_metrics(metrics_port)
    ends: list[int] = []  # not an Event: its lock may be held where a handler finds the program
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda given, _: ends.append(given))
    maintenance = Maintenance(settings)
    agents = Worker(app.agents_setup(settings, opened(settings)))
    with app.told_to_end(agents.take_no_more):
        maintenance.start()
        agents.start()
        LOG.info("The worker runs, data in %s", settings.data)
        while not ends:
            time.sleep(LOOK_S)
    agents.close()
    maintenance.close()


def _show_metrics(port: int) -> None:
    try:
        start_http_server(port, "127.0.0.1")
    except OSError as error:
        raise AddressInUse(
            f"cannot listen at 127.0.0.1:{port}: {error.strerror}; name another with --metrics-port"
        ) from None
