"""The commands that read: `classify`, `sql` and `files`."""

import sys
from typing import Any

import click
import msgspec
import pyarrow as pa

from api import data_folder
from api.cli import output
from api.routes.classify import classified
from api.settings import Settings
from warehouse.lake.delta_table import TABLES
from warehouse.plural import counted
from warehouse.query import engine, sql, table_files
from warehouse.query.table_files import TableFiles


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
        with sql.run_query(settings.data, question) as rows:
            output.write(rows, chosen)
    except pa.ArrowException as error:
        raise click.ClickException(f"{chosen} cannot hold this: {error}; CAST the column AS VARCHAR") from None


def _lines() -> Any:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n").decode(errors="replace")


@click.command("files")
@click.argument("table", type=click.Choice([spec.name for spec in TABLES]))
@click.option("--sql", "is_sql", is_flag=True, help="Print read_parquet([...]) for DuckDB.")
@click.option("--format", "form", type=click.Choice(("json", "ndjson")), help="Print path, partition, size and rows.")
@click.pass_obj
def files_(settings: Settings, table: str, is_sql: bool, form: str | None) -> None:
    """Print the Parquet files that are a table now, one path per line.

    The folder also contains files that compaction has replaced: never read all of it. The list is valid for an hour.
    Hits that wait in the hot log are in no file: their number is on standard error.
    """
    if is_sql and form:
        raise click.UsageError("give one of --sql and --format")
    data_folder.require_hot_log(settings)
    listing = table_files.read(settings.hot_log, settings.lake, table)
    _warn(table, listing)
    if is_sql and not listing.files:
        raise click.ClickException(f"table {table} has no files yet")
    click.echo(_shown(listing, is_sql, form), nl=False)


def _shown(listing: TableFiles, is_sql: bool, form: str | None) -> bytes:
    if is_sql:
        return engine.parquet_by_name(listing.files).encode() + b"\n"
    if form == "json":
        return msgspec.json.encode(listing.files) + b"\n"
    lines = map(msgspec.json.encode, listing.files) if form else (file.path.encode() for file in listing.files)
    return b"".join(line + b"\n" for line in lines)


def _warn(table: str, listing: TableFiles) -> None:
    """Print what the files lack."""
    if listing.waiting:
        verb = "waits" if listing.waiting == 1 else "wait"
        waiting = f"{counted(listing.waiting, 'hit')} {verb} in the hot log and in no file"
        print(f"{waiting}; `readership flush` loads what waits", file=sys.stderr)
    if listing.stale_days:
        days = ", ".join(listing.stale_days)
        print(f"{table} is being rewritten for {days}; list the files again in a moment", file=sys.stderr)
