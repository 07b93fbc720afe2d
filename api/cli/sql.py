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
    """Classify a user agent, or each line of standard input.

    Prints one line of JSON for each user agent: traffic, agent, operator, purpose and the rule that matched.
    """
    for each in [user_agent] if user_agent is not None else _lines():
        click.echo(msgspec.json.encode(classified(each)))


@click.command("sql")
@click.argument("query", metavar="QUERY")
@click.option(
    "--format", "form", type=click.Choice(output.FORMS), help="[default: table on a terminal, json when piped]"
)
@click.pass_obj
def sql_(settings: Settings, query: str, form: str | None) -> None:
    """Query hits, daily_views and agents in DuckDB's SQL.

    The query is a single SELECT, DESCRIBE, SHOW or SUMMARIZE. Its result includes the hits that wait in the hot log.
    Sum the column views of daily_views instead of counting its rows: a day may have several rows for one path.
    """
    chosen = form or ("table" if sys.stdout.isatty() else "json")
    if chosen == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is binary: send it to a file, as in > answer.parquet")
    data_folder.require(settings)
    try:
        with sql.run_query(settings.data, query) as rows:
            output.write(rows, chosen)
    except pa.ArrowException as error:
        raise click.ClickException(
            f"{chosen} cannot represent the result: {error}; CAST the column AS VARCHAR"
        ) from None


def _lines() -> Any:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n").decode(errors="replace")


@click.command("files")
@click.argument("table", type=click.Choice([spec.name for spec in TABLES]))
@click.option("--sql", "is_sql", is_flag=True, help="Print an expression for DuckDB: read_parquet([...]).")
@click.option(
    "--format",
    "form",
    type=click.Choice(("json", "ndjson")),
    help="Print path, partition, size and rows of each file as JSON.",
)
@click.pass_obj
def files_(settings: Settings, table: str, is_sql: bool, form: str | None) -> None:
    """List the Parquet files of a table.

    Prints one path per line; the list is valid for an hour. Do not read all files of the folder: it also contains files
    that compaction has replaced. A warning on standard error counts the hits that are still in the hot log.
    """
    if is_sql and form:
        raise click.UsageError("use either --sql or --format")
    data_folder.require_hot_log(settings)
    listing = table_files.read(settings.hot_log, settings.lake, table)
    _warn(table, listing)
    if is_sql and not listing.files:
        raise click.ClickException(f"table {table} has no files yet; run readership flush if hits wait in the hot log")
    click.echo(_listing(listing, is_sql, form), nl=False)


def _listing(listing: TableFiles, is_sql: bool, form: str | None) -> bytes:
    if is_sql:
        return engine.parquet_by_name(listing.files).encode() + b"\n"
    if form == "json":
        return msgspec.json.encode(listing.files) + b"\n"
    lines = map(msgspec.json.encode, listing.files) if form else (file.path.encode() for file in listing.files)
    return b"".join(line + b"\n" for line in lines)


def _warn(table: str, listing: TableFiles) -> None:
    """Print which hits or days the files lack."""
    if listing.waiting:
        verb = "is" if listing.waiting == 1 else "are"
        waiting = f"{counted(listing.waiting, 'hit')} {verb} in the hot log and in no file yet"
        print(f"{waiting}; to load the hot log, run readership flush", file=sys.stderr)
    if listing.stale_days:
        days = ", ".join(listing.stale_days)
        print(f"{table} is being rewritten for {days}; list the files again in a moment", file=sys.stderr)
