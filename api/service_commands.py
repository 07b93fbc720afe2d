"""The commands that go on until they are ended: `serve`, `demo` and `worker`."""

import signal
from typing import Any

import click

from api import data_folder, demo, serve
from api.output import ERR
from api.settings import Settings
from api.upkeep import Upkeep


def _serving(command: Any) -> Any:
    """The options of the commands that serve."""
    for option in (
        click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="HTTP processes."),
        click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True),
        click.option("--host", default="127.0.0.1", show_default=True),
    ):
        command = option(command)
    return command


@click.command("serve")
@_serving
@click.pass_obj
def serve_(settings: Settings, host: str, port: int, workers: int) -> None:
    """Serve HTTP, load the hot log into the lake and keep the lake in order."""
    data_folder.prepare(settings)
    listener = serve.listen(host, port)
    ERR.print(
        f"Readership listens at {serve.url(listener)}, data in {settings.data}",
        highlight=False,
        soft_wrap=True,
    )
    serve.serve(settings, listener, workers)


@click.command("demo")
@_serving
@click.pass_obj
def demo_(settings: Settings, host: str, port: int, workers: int) -> None:
    """Fill an empty data folder with the sample log, show who reads it, and serve."""
    data_folder.prepare(settings)
    listener = serve.listen(host, port)
    demo.show(settings, serve.url(listener))
    serve.serve(settings, listener, workers)


@click.command()
@click.pass_obj
def worker(settings: Settings) -> None:
    """Load the hot log and keep the lake in order, without HTTP, until SIGTERM."""
    data_folder.prepare(settings)
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # waited for below: a handler that sets an Event may lock up
    upkeep = Upkeep(settings)
    upkeep.start()
    ERR.print(f"The worker keeps {settings.lake}", highlight=False, markup=False, soft_wrap=True)
    signal.sigwait(ends)
    upkeep.close()
