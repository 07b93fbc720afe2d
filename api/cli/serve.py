"""The commands that serve HTTP: `serve` and `demo`."""

import logging
import socket
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import sqlalchemy as sa

from api import data_folder, keys, logs
from api.cli import sample_log
from api.cli.log_import.reading import ledger_from_us
from api.cli.output import ERR, OUT, table
from api.cli.sample_log import SAMPLE
from api.dashboard.accounts import one_time_links, users
from api.dashboard.accounts.users import User
from api.dashboard.robots import texts
from api.errors import UserNotFound
from api.routes.reports.views import report
from api.server import serve, service_lock, service_url
from api.server.service_lock import ServiceLock
from api.settings import Settings
from ingest.imports.importer import Options, import_logs
from warehouse.control import database, projects
from warehouse.database_errors import Cause, cause_of, reason_of
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches
from warehouse.query.hits_snapshot import HitsReader
from warehouse.query.time_range import FIRST
from warehouse.report.filters import Filters, Query
from warehouse.report.reports import Reports

LOG = logging.getLogger("readership.service")
PORT, DEMO_PORT = 8000, 8001
"""Default ports of `serve` and `demo`; they differ so that a demo can run beside a service."""
DEMO_PROJECT, DEMO_ORIGIN = "demo", "https://example.com"
PATHS_SHOWN = 10
DEMO_COMMANDS = """\
# an AI agent reads a page
curl -w "\\n" -X POST {url}/v1/analytics/demo/hits -H "Authorization: Bearer {key}" \\
  -H "Content-Type: application/json" \\
  -d '{{"path": "/docs/hello", "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"}}'

# a person's browser reads it too
curl -w "\\n" -X POST {url}/v1/analytics/demo/hits -H "Content-Type: application/json" \\
  -A "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0" \\
  -d '{{"url": "https://example.com/docs/hello"}}'

# the export has both at once
curl -w "\\n" "{url}/v1/analytics/demo/views?dateFrom={today}" -H "Authorization: Bearer {key}"

# why GPTBot is an AI agent
curl -w "\\n" -G {url}/v1/classify --data-urlencode "userAgent=GPTBot/1.3" -H "Authorization: Bearer {key}"
"""


def _server_options(port: int) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of a command that serves HTTP; `port` is the default."""

    def add(command: Any) -> Any:
        for option in (
            click.option(
                "--workers",
                "processes",
                type=click.IntRange(1, 64),
                default=1,
                show_default=True,
                help="Number of processes that answer HTTP requests.",
            ),
            click.option(
                "--port",
                type=click.IntRange(0, 65535),
                default=port,
                show_default=True,
                help="Port to listen on; 0 for any free port.",
            ),
            click.option(
                "--host",
                default="127.0.0.1",
                show_default=True,
                metavar="ADDRESS",
                help="Address to listen on; 0.0.0.0 or :: for all interfaces.",
            ),
        ):
            command = option(command)
        return command

    return add


@click.command("serve")
@_server_options(PORT)
@click.pass_obj
def serve_(settings: Settings, host: str, port: int, processes: int) -> None:
    """Run the service until SIGTERM or Ctrl-C.

    The service answers HTTP requests, loads the hot log into the lake, maintains the lake and runs agent jobs.
    """
    logs.configure(settings.log_level)
    lock = _lock_data_folder(settings)
    listener = serve.listen(host, port)
    public = f", for visitors at {settings.base_url}" if settings.base_url else ""
    LOG.info("Readership listens at %s%s, data in %s", serve.described_url(listener), public, settings.data)
    _log_first_owner_link(settings, serve.url(listener))
    _serve(settings, listener, processes, lock)


@click.command("demo")
@_server_options(DEMO_PORT)
@click.pass_obj
def demo_(settings: Settings, host: str, port: int, processes: int) -> None:
    """Serve a sample site with several weeks of traffic.

    The command imports the sample log into an empty data folder, prints who reads the site and commands to try with a
    new key, and then serves. Its default data folder and port differ from those of serve: a demo can run beside a
    service.
    """
    logs.configure(settings.log_level)
    lock = _lock_data_folder(settings)
    listener = serve.listen(host, port)
    show_demo(settings, serve.url(listener), serve.described_url(listener))
    _serve(settings, listener, processes, lock)


def _serve(settings: Settings, listener: socket.socket, processes: int, lock: ServiceLock) -> None:
    """Serve, with the URL in the run folder for links that other commands print."""
    service_url.write(settings.run, serve.url(listener))
    try:
        serve.serve(settings, listener, processes, lock)
    finally:
        service_url.delete(settings.run)


def _log_first_owner_link(settings: Settings, url: str) -> None:
    """Log a link that creates the first owner, if no user exists. The level is `warning`: an operator must see it."""
    engine = database.connect(settings.database_url)
    try:
        token = one_time_links.create_for_first_owner(engine, int(time.time()))
    except sa.exc.DBAPIError as error:
        if cause_of(error) is Cause.PROGRAM:
            raise
        LOG.warning("cannot create a link for the first owner: %s", reason_of(error))
        return
    finally:
        engine.dispose()
    if token is not None:
        link = f"{settings.base_url or url}/welcome/{token}"
        LOG.warning("The dashboard has no user yet. Create the first owner within 30 minutes: %s", link)


def _lock_data_folder(settings: Settings) -> ServiceLock:
    """Take the lock of the service and prepare the data folder.

    Raises:
        FolderInUse: another service runs on the data folder.
    """
    data_folder.make(settings)
    lock = service_lock.acquire(settings.data, settings.run, LOG.warning)
    click.get_current_context().call_on_close(lock.release)
    data_folder.prepare(settings)
    return lock


def show_demo(settings: Settings, url: str, described_url: str) -> None:
    """Fill an empty data folder; print its export, and commands to try.

    `described_url` is the URL for a message: see `serve.described_url`.
    """
    now = datetime.now(UTC)
    engine = database.connect(settings.database_url)
    _fill(engine, settings, int(now.timestamp()))
    token = one_time_links.create(engine, "sign_in", _demo_user(engine, int(now.timestamp())).id, int(now.timestamp()))
    # The token of an earlier demo's key is not stored. That key stays valid, and this run creates another one.
    key = keys.create(engine, DEMO_PROJECT, DEMO_PROJECT, "write", None, int(now.timestamp()))[1]
    engine.dispose()
    _show_export(settings, now)
    ERR.print(
        f"\nReadership listens at {described_url}, data in {settings.data}; API reference: {url}/docs\n"
        "Try in another terminal:\n",
        soft_wrap=True,
    )
    OUT.print(
        DEMO_COMMANDS.format(url=url, key=key, today=now.date().isoformat()),
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    link = f"{settings.base_url or url}/welcome/{token}"
    ERR.print(f"Open the dashboard with this link, which works once, within 30 minutes:\n{link}\n", soft_wrap=True)


def _demo_user(engine: sa.Engine, now_s: int) -> User:
    """Return the owner of the demo, who has no password and signs in by the link of each start."""
    try:
        return users.find_by_name(engine, DEMO_PROJECT)
    except UserNotFound:
        return users.create(engine, DEMO_PROJECT, "owner", None, now_s)


def _fill(engine: sa.Engine, settings: Settings, now_s: int) -> None:
    """Import the sample log and create the project with its robots.txt, unless the project exists."""
    try:
        projects.find(engine, DEMO_PROJECT)
    except ProjectNotFound:
        ERR.print(f"Importing the sample log, {SAMPLE.name} ...", highlight=False)
        with closing(batches.connect(settings.hot_log)) as hot, TemporaryDirectory() as folder:
            recent = Path(folder) / SAMPLE.name
            sample_log.write_recent(recent, datetime.now(UTC).date())
            options = Options(ledger_from_us=ledger_from_us(settings))
            import_logs(hot, settings.lake, DEMO_PROJECT, [str(recent)], time.time, options)
        projects.create(engine, DEMO_PROJECT, (DEMO_ORIGIN, projects.ANY_ORIGIN), now_s)
        texts.save(engine, DEMO_PROJECT, sample_log.ROBOTS.read_text(encoding="utf-8"), now_s)


def _show_export(settings: Settings, now: datetime) -> None:
    reader = HitsReader(settings.hot_log, settings.lake)
    with closing(Reports(reader, settings.lake, settings.run / "spill", settings.cache_bytes)) as reports:
        query = Query(DEMO_PROJECT, FIRST, None, Filters(), now)
        page = report(reports.views(reports.take(), query, 0, PATHS_SHOWN))
    rows = [(row.path, row.human, row.ai, row.total) for row in page.views]
    total = ("all paths", page.totals.human, page.totals.ai, page.totals.total)
    OUT.print(table(("path", "human", "AI", "total"), [*rows, total], title="Who reads the sample site"))
