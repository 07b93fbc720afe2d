"""A filled service to try: the sample log imported, its first export shown, and commands to paste."""

import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from api import keys
from api.cli.log_reading import ledger_from_us
from api.cli.output import ERR, OUT, table
from api.routes.views import report
from api.settings import Settings
from ingest.imports.importer import Options, import_logs
from warehouse.control import database, projects
from warehouse.errors import ProjectNotFound
from warehouse.hotlog import batches
from warehouse.query.report import HOT_COLUMNS, Views
from warehouse.query.snapshot import Reader
from warehouse.query.time_range import FIRST

PROJECT = "demo"
SAMPLE = Path(__file__).parents[2] / "sample_data" / "access.log"
SHOWN_PATHS = 10
COMMANDS = """\
# an AI agent reads a page
curl -w "\\n" -X POST {url}/v1/analytics/demo/hits -H "Authorization: Bearer {key}" \\
  -H "Content-Type: application/json" \\
  -d '{{"path": "/docs/hello", "userAgent": "Mozilla/5.0 (compatible; GPTBot/1.3; +https://openai.com/gptbot)"}}'

# a person's browser reads it too
curl -w "\\n" -X POST {url}/v1/analytics/demo/hits -H "Content-Type: application/json" \\
  -A "Mozilla/5.0 (X11; Linux x86_64; rv:155.0) Gecko/20100101 Firefox/155.0" \\
  -d '{{"url": "https://example.com/docs/hello"}}'

# both are in the export at once
curl -w "\\n" "{url}/v1/analytics/demo/views?dateFrom={today}" -H "Authorization: Bearer {key}"

# and why
curl -w "\\n" -G {url}/v1/classify --data-urlencode "userAgent=GPTBot/1.3" -H "Authorization: Bearer {key}"
"""


def show(settings: Settings, url: str, place: str) -> None:
    """Fill an empty data folder, then print what is in it and what to try."""
    now = datetime.now(UTC)
    engine = database.connect(settings.database_url)
    _fill(engine, settings, int(now.timestamp()))
    # The token of an earlier demo's key is not stored: that key stays valid, and this run has its own.
    key = keys.create(engine, PROJECT, PROJECT, "write", None, int(now.timestamp()))[1]
    engine.dispose()
    _show_export(settings, now)
    ERR.print(
        f"\nReadership listens at {place}, data in {settings.data}; its reference is {url}/docs.\n"
        "Try, in another terminal:\n",
        soft_wrap=True,
    )
    OUT.print(
        COMMANDS.format(url=url, key=key, today=now.date().isoformat()),
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _fill(engine: sa.Engine, settings: Settings, now_s: int) -> None:
    """The project, with the sample log in it, if it is not there yet."""
    try:
        projects.find(engine, PROJECT)
    except ProjectNotFound:
        ERR.print(f"Importing the sample log, {SAMPLE.name} ...", highlight=False)
        with closing(batches.connect(settings.hot_log)) as hot:
            options = Options(ledger_from_us=ledger_from_us(settings))
            import_logs(hot, settings.lake, PROJECT, [str(SAMPLE)], time.time, options)
        projects.create(engine, PROJECT, (projects.ANY_ORIGIN,), now_s)


def _show_export(settings: Settings, now: datetime) -> None:
    views = Views(Reader(settings.hot_log, settings.lake, HOT_COLUMNS), settings.run / "spill")
    found = report(views.ranking(PROJECT, FIRST, None, now), SHOWN_PATHS, 0)
    views.close()
    rows = [(row.path, row.human, row.ai, row.total) for row in found.views]
    total = ("all paths", found.totals.human, found.totals.ai, found.totals.total)
    OUT.print(table(("path", "human", "AI", "total"), [*rows, total], title="Who reads the sample site"))
