"""The commands that read: `classify`, `sql` and `files`."""

import sys
from collections.abc import Iterator

import click
import msgspec
import pyarrow as pa
from rich.table import Table

from api import data_folder
from api.cli import output
from api.routes.classify import Classified, classified
from api.settings import Settings
from warehouse.lake.delta_table import TABLES
from warehouse.plural import counted
from warehouse.query import engine, sql, table_files
from warehouse.query.table_files import TableFiles


@click.command("classify")
@click.argument("user_agent", required=False)
@output.rows_format
def classify_(user_agent: str | None, form: str | None) -> None:
    """Classify a user agent, or each line of standard input.

    Prints the traffic, agent, operator, purpose and the rule that matched. The result of one user agent is an object in
    JSON; the results of standard input are rows, each printed as soon as its line is read.
    """
    if user_agent is not None:
        one = classified(user_agent)
        output.show(one, _classified_table([one]), form)
    elif output.chosen_form(form) == "table":
        output.OUT.print(_classified_table([classified(line) for line in _lines()]))
    else:
        output.write_json(([classified(line)] for line in _lines()), output.chosen_form(form))


def _lines() -> Iterator[str]:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n").decode(errors="replace")


def _classified_table(rows: list[Classified]) -> Table:
    columns = ("user agent", "traffic", "agent", "operator", "purpose", "rule")
    return output.table(
        columns, (["" if cell is None else cell for cell in msgspec.structs.astuple(row)] for row in rows)
    )


@click.command("sql")
@click.argument("query", metavar="QUERY")
@output.rows_option("csv", "parquet")
@click.pass_obj
def sql_(settings: Settings, query: str, form: str | None) -> None:
    """Query hits, daily_views and agents in DuckDB's SQL.

    The query is a single SELECT, DESCRIBE, SHOW or SUMMARIZE. Its result includes the hits that wait in the hot log.
    Sum the column views of daily_views instead of counting its rows: a day may have several rows for one path.
    """
    chosen = output.chosen_form(form)
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


@click.command("files")
@click.argument("table", type=click.Choice([spec.name for spec in TABLES]))
@click.option("--sql", "is_sql", is_flag=True, help="Print an expression for DuckDB: read_parquet([...]).")
@output.rows_option(default="one path per line")
@click.pass_obj
def files_(settings: Settings, table: str, is_sql: bool, form: str | None) -> None:
    """List the Parquet files of a table.

    Prints one path per line; every --format adds the partition, the size in bytes and the number of rows. The list is
    valid for an hour. Do not read all files of the folder: it also contains files that compaction has replaced. A
    warning on standard error counts the hits that are still in the hot log.
    """
    if is_sql and form:
        raise click.UsageError("use either --sql or --format")
    data_folder.require_hot_log(settings)
    listing = table_files.read(settings.hot_log, settings.lake, table)
    _warn(table, listing)
    if is_sql and not listing.files:
        raise click.ClickException(f"table {table} has no files yet; run readership flush if hits wait in the hot log")
    if is_sql:
        click.echo(engine.parquet_by_name(listing.files))
    elif form:
        rows = ((file.path, file.partition, file.size, file.rows) for file in listing.files)
        output.show_rows(listing.files, output.table(("path", "partition", "size", "rows"), rows), form)
    else:
        click.echo("".join(f"{file.path}\n" for file in listing.files), nl=False)


def _warn(table: str, listing: TableFiles) -> None:
    """Print which hits or days the files lack."""
    if listing.waiting:
        verb = "is" if listing.waiting == 1 else "are"
        waiting = f"{counted(listing.waiting, 'hit')} {verb} in the hot log and in no file yet"
        print(f"{waiting}; to load the hot log, run readership flush", file=sys.stderr)
    if listing.stale_days:
        days = ", ".join(listing.stale_days)
        print(f"{table} is being rewritten for {days}; list the files again in a moment", file=sys.stderr)
