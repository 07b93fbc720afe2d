"""The commands that answer: `classify` and `sql`."""

import sys
from typing import Any

import click
import msgspec
import pyarrow as pa

from api import data_folder
from api.cli import output
from api.routes.classify import classified
from api.settings import Settings
from warehouse.query import sql


@click.command("classify")
@click.argument("user_agent", required=False)
def classify_(user_agent: str | None) -> None:
    """Say of a user agent, or of each line of standard input, who it is and which rule says so. Prints JSON."""
    given = [user_agent] if user_agent is not None else _lines()
    for each in given:
        click.echo(msgspec.json.encode(classified(each)))


@click.command("sql")
@click.argument("question", metavar="SELECT...")
@click.option(
    "--format", "form", type=click.Choice(output.FORMS), help="[default: table on a terminal, json when piped]"
)
@click.pass_obj
def sql_(settings: Settings, question: str, form: str | None) -> None:
    """Ask in DuckDB's SQL over the views hits, daily_views and agents, of this moment, hot rows included.

    One SELECT, DESCRIBE, SHOW or SUMMARIZE. Sum the column views of daily_views, and never count its rows: several may
    stand for one day.
    """
    chosen = form or ("table" if sys.stdout.isatty() else "json")
    if chosen == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is no text: send it to a file, as in > answer.parquet")
    data_folder.require(settings)
    try:
        with sql.answer(settings.data, question) as rows:
            output.write(rows, chosen)
    except pa.ArrowException as error:
        raise click.ClickException(f"{chosen} cannot hold this: {error}; CAST the column AS VARCHAR") from None


def _lines() -> Any:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n").decode(errors="replace")
