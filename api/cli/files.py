"""The command `files`: the Parquet files of a table."""

import sys

import click
import msgspec

from api import data_folder
from api.settings import Settings
from warehouse.lake.delta_table import TABLES
from warehouse.plural import counted
from warehouse.query import engine, table_files
from warehouse.query.table_files import TableFiles


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
    listing = table_files.of(settings.hot_log, settings.lake, table)
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
