"""The command `demo`, which fills an empty data folder, prints an export and commands to try, and serves."""

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import click

from api import logs
from api.accounts import one_time_links, users
from api.accounts.users import User
from api.cli import serve
from api.cli.demo import sample_projects
from api.cli.demo.sample_projects import DEMO
from api.cli.output import ERR, OUT, table
from api.errors import UserNotFound
from api.server import serve as server
from api.settings import Settings
from warehouse.columns.filters import Filters
from warehouse.control import database
from warehouse.database.pool import Pool
from warehouse.query.snapshot import SnapshotReader
from warehouse.query.time_range import FIRST
from warehouse.report.reports import Reports
from warehouse.report.results import Query

OWNER = "owner"
"""Name of the user. It differs from the project, because pages show both."""
PORT = 8001
"""Default port. It differs from that of `serve`, so that a demo can run beside a service."""
PATHS_SHOWN = 10
PRICE_PER_GB = "0.09 USD"
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


@click.command("demo")
@serve.server_options(PORT)
@click.pass_obj
def demo_(settings: Settings, host: str, port: int, processes: int) -> None:
    """Serve sample sites with several weeks of traffic.

    The command writes the sample into an empty data folder, prints who reads the site and commands to try with a
    new key, and then serves. Its default data folder and port differ from those of serve: a demo can run beside a
    service.
    """
    settings = replace(settings, price_per_gb=settings.price_per_gb or PRICE_PER_GB)
    logs.configure(settings.log_level)
    server.import_app(processes)
    lock = serve.lock_data_folder(settings)
    listener = server.listen(host, port)
    show_demo(settings, server.url(listener), server.described_url(listener))
    serve.run(settings, listener, processes, lock)


def show_demo(settings: Settings, url: str, described_url: str) -> None:
    """Fill an empty data folder; print its export, and commands to try. `described_url`: see `serve.described_url`."""
    now = datetime.now(UTC)
    now_s = int(now.timestamp())
    base_url = settings.base_url or url
    control = database.connect(settings.database_url)
    shared = None
    if not sample_projects.exists(control):
        ERR.print("Writing the sample projects ...", highlight=False)
        shared = sample_projects.create(control, settings, now)
    token = one_time_links.create(control, "sign_in", _demo_user(control, now_s).id, now_s)
    key = sample_projects.new_key(control, now_s)
    control.close()
    _show_export(settings, now)
    ERR.print(
        f"\nReadership listens at {described_url}, data in {settings.data}; API reference: {url}/docs\n"
        "Try in another terminal:\n",
        soft_wrap=True,
    )
    commands = DEMO_COMMANDS.format(url=url, key=key, today=now.date().isoformat())
    OUT.print(commands, markup=False, highlight=False, soft_wrap=True)
    if shared is not None:
        _show_link(
            "The overview for people without an account, until you revoke this link", f"{base_url}/shared/{shared}"
        )
    link = f"{base_url}/welcome/{token}?next=/projects/{DEMO}"
    _show_link("Open the dashboard with this link, which works once, within 30 minutes", link)


def _show_link(text: str, link: str) -> None:
    ERR.print(f"{text}:\n{link}\n", soft_wrap=True)


def _demo_user(control: Pool, now_s: int) -> User:
    """Return the owner of the demo, who has no password and signs in by the link of each start."""
    try:
        return users.find_by_name(control, OWNER)
    except UserNotFound:
        return users.create(control, OWNER, "owner", None, now_s)


def _show_export(settings: Settings, now: datetime) -> None:
    reader = SnapshotReader(settings.hot_log, settings.lake)
    with closing(Reports(reader, settings.lake, settings.run / "spill", settings.cache_bytes)) as reports:
        query = Query(DEMO, FIRST, None, Filters(), now)
        page = reports.views(reports.take(), query, 0, PATHS_SHOWN)
    rows = [(row["path"], row["human"], row["ai"], row["total"]) for row in page.rows.to_pylist()]
    total = ("all paths", page.totals.human, page.totals.ai, page.totals.total)
    OUT.print(table(("path", "human", "AI", "total"), [*rows, total], title="Who reads the sample site"))
