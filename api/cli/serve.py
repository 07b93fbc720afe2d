"""The commands that go on until they are ended: `serve`, `demo` and `worker`."""

import logging
import signal
import time
from collections.abc import Callable
from typing import Any

import click
from prometheus_client import start_http_server

from agent.worker.worker import Worker
from api import app, data_folder
from api.cli import demo
from api.control_database import opened
from api.errors import AddressInUse
from api.http import access_log
from api.maintenance import Upkeep
from api.server import serve, service_lock
from api.server.service_lock import ServiceLock
from api.settings import Settings

LOOK_S = 0.2
LOG = logging.getLogger("readership.service")
PORT, DEMO_PORT = 8000, 8001
"""Default ports; a demo runs beside a service."""


def _serving(port: int) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of the commands that serve; `port` is the default."""

    def add(command: Any) -> Any:
        for option in (
            click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="HTTP processes."),
            click.option("--port", type=click.IntRange(0, 65535), default=port, show_default=True),
            click.option("--host", default="127.0.0.1", show_default=True),
        ):
            command = option(command)
        return command

    return add


@click.command("serve")
@_serving(PORT)
@click.pass_obj
def serve_(settings: Settings, host: str, port: int, workers: int) -> None:
    """Serve HTTP, load the hot log into the lake and keep the lake in order."""
    access_log.set_up(settings.log_level)
    lock = _sole_service(settings)
    listener = serve.listen(host, port)
    public = f", for visitors at {settings.base_url}" if settings.base_url else ""
    LOG.info("Readership listens at %s%s, data in %s", serve.place(listener), public, settings.data)
    serve.serve(settings, listener, workers, lock)


@click.command("demo")
@_serving(DEMO_PORT)
@click.pass_obj
def demo_(settings: Settings, host: str, port: int, workers: int) -> None:
    """Fill an empty data folder with the sample log, show who reads it, and serve.

    It has its own data folder and port, so that it runs beside a service. Each start prints a new key.
    """
    access_log.set_up(settings.log_level)
    lock = _sole_service(settings)
    listener = serve.listen(host, port)
    demo.show(settings, serve.url(listener), serve.place(listener))
    serve.serve(settings, listener, workers, lock)


def _sole_service(settings: Settings) -> ServiceLock:
    """Take the lock of the service and prepare the data folder.

    Raises:
        FolderInUse: another service runs on it.
    """
    data_folder.make(settings)
    lock = service_lock.acquire(settings.data, settings.run, LOG.warning)
    click.get_current_context().call_on_close(lock.release)
    data_folder.prepare(settings)
    return lock


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
    upkeep = Upkeep(settings)
    agents = Worker(app.agents_setup(settings, opened(settings)))
    with app.told_to_end(agents.take_no_more):
        upkeep.start()
        agents.start()
        LOG.info("The worker runs, data in %s", settings.data)
        while not ends:
            time.sleep(LOOK_S)
    agents.close()
    upkeep.close()


def _show_metrics(port: int) -> None:
    try:
        start_http_server(port, "127.0.0.1")
    except OSError as error:
        raise AddressInUse(
            f"cannot listen at 127.0.0.1:{port}: {error.strerror}; name another with --metrics-port"
        ) from None
