"""The command `worker`: a service without HTTP."""

import logging
import signal
import time

import click
from prometheus_client import start_http_server

from agent.worker.threads import WorkerThreads
from api import data_folder, logs
from api.background import open_scheduler, worker_config
from api.cli.options.control_database import opened
from api.errors import AddressInUse
from api.settings import Settings

POLL_S = 0.2
"""Time between two checks for a signal, in seconds."""
LOG = logging.getLogger("readership.service")


@click.command()
@click.option("--metrics-port", type=click.IntRange(1, 65_535), help="Port of /metrics on 127.0.0.1. [default: none]")
@click.pass_obj
def worker(settings: Settings, metrics_port: int | None) -> None:
    """Run a service without HTTP until SIGTERM or Ctrl-C.

    The command loads the hot log into the lake, maintains the lake and runs agent jobs. It may run beside a service.
    """
    logs.configure(settings.log_level)
    data_folder.prepare(settings)
    if metrics_port is not None:
        _serve_metrics(metrics_port)
    signals: list[int] = []  # not an Event: a signal handler must not wait for a lock
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.append(number))
    maintenance = open_scheduler(settings)
    threads = WorkerThreads(worker_config(settings, opened(settings)))
    maintenance.start()
    threads.start()
    LOG.info("The worker runs, data in %s", settings.data)
    while not signals:
        time.sleep(POLL_S)
    threads.close()
    maintenance.close()


def _serve_metrics(port: int) -> None:
    try:
        start_http_server(port, "127.0.0.1")
    except OSError as error:
        raise AddressInUse(
            f"cannot listen at 127.0.0.1:{port}: {error.strerror}; name another with --metrics-port"
        ) from None
