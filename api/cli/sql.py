"""The commands `sql`, `files` and `classify`: queries, the files of a table, and explained classifications."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, TypeVar

import click
import pyarrow as pa
from msgspec import structs
from rich.console import Group
from rich.table import Table

from api import data_folder
from api.cli import output
from api.routes.classify import Classified, classified
from api.settings import Settings
from ingest.classification.explain import TriedStep, explain
from warehouse.plural import counted
from warehouse.query import engine, sql, sql_views
from warehouse.query.snapshot import Snapshot, SnapshotReader
from warehouse.tables import HITS_TABLE, TABLES

_Row = TypeVar("_Row", bound=Classified)
_COMPUTED = (
    "daily_views has no files: it is computed from hits, by SELECT project_id, date, path, traffic, agent, count(*) AS "
    "views FROM hits GROUP BY ALL; --sql prints this query over the files of hits, and readership sql has it as a view"
)


class Explained(Classified, frozen=True, rename="camel"):
    """A classification with the steps that led to it."""

    steps: tuple[TriedStep, ...]


@click.command("classify")
@click.argument("user_agent", required=False)
@click.option("--accept", metavar="HEADER", help="Accept header of the requests. [default: not known]")
@click.option("--explain", "is_explained", is_flag=True, help="Add the steps of the rules, up to the one that decided.")
@output.rows_format
def classify_(user_agent: str | None, accept: str | None, is_explained: bool, form: str | None) -> None:
    """Classify a user agent, or each line of standard input.

    Prints the traffic, agent, operator, purpose and the rule that matched. The result of one user agent is an object in
    JSON; the results of standard input are rows, each printed as soon as its line is read.
    """
    user_agents = _lines() if user_agent is None else iter([user_agent])
    if is_explained:
        _show((_explained(each, accept) for each in user_agents), _steps_tables, form, is_one=user_agent is not None)
    else:
        rows = (classified(each, accept) for each in user_agents)
        _show(rows, _classified_table, form, is_one=user_agent is not None)


def _show(rows: Iterator[_Row], table: Callable[[Iterable[_Row]], Any], form: str | None, *, is_one: bool) -> None:
    chosen = output.chosen_form(form)
    if chosen == "table":
        output.OUT.print(table(rows))
    elif is_one:
        output.show(next(rows), "", chosen)
    else:
        output.write_json(([row] for row in rows), chosen)


def _explained(user_agent: str, accept: str | None) -> Explained:
    return Explained(**structs.asdict(classified(user_agent, accept)), steps=explain(user_agent, accept))


def _lines() -> Iterator[str]:
    for line in sys.stdin.buffer:
        yield line.rstrip(b"\r\n").decode(errors="replace")


def _classified_table(rows: Iterable[Classified]) -> Table:
    columns = ("user agent", "traffic", "agent", "operator", "purpose", "rule")
    return output.table(columns, (["" if cell is None else cell for cell in structs.astuple(row)] for row in rows))


def _steps_tables(rows: Iterable[Explained]) -> Group:
    """Return a table for each user agent, with one line per step. The title has the name of the agent or bot, too."""
    columns = ("step", "matched text", "rule", "meaning", "source")
    titled = ((row, f"{row.user_agent}\nagent {row.agent}" if row.agent else row.user_agent) for row in rows)
    return Group(*(output.table(columns, map(_step_cells, row.steps), title) for row, title in titled))


def _step_cells(step: TriedStep) -> tuple[str, ...]:
    if not step.matched:
        return (step.name, "-", "", "", "")
    source = f"{step.source}, {step.reference}" if step.reference else step.source
    return (step.name, step.text or "", step.rule or "", step.meaning or "", source or "")


@click.command("sql")
@click.argument("query", metavar="QUERY")
@output.rows_option("csv", "parquet")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(0, 86_400),
    default=sql.TIMEOUT_S,
    show_default=True,
    help="Seconds after which the query is ended; 0 is no limit.",
)
@click.pass_obj
def sql_(settings: Settings, query: str, timeout_s: float, form: str | None) -> None:
    """Query hits, daily_views, errors and agents in DuckDB's SQL.

    The query is a single SELECT, DESCRIBE, SHOW or SUMMARIZE. Its result includes the hits that wait in the hot log.
    Sum the column views of daily_views instead of counting its rows: a day may have several rows for one path.
    """
    chosen = output.chosen_form(form)
    if chosen == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is binary: send it to a file, as in > answer.parquet")
    data_folder.require(settings)
    data_folder.require_agents(settings)
    sql.limit_memory()
    try:
        with sql.run_query(settings.data, query, settings.lake, settings.hot_log, timeout_s) as rows:
            output.write(rows, chosen)
    except MemoryError:  # first, because pa.ArrowMemoryError is one
        raise click.ClickException(sql.TOO_LARGE) from None
    except pa.ArrowException as error:
        raise click.ClickException(
            f"{chosen} cannot represent the result: {error}; CAST the column AS VARCHAR"
        ) from None


@click.command("files")
@click.argument("table", type=click.Choice([*(spec.name for spec in TABLES), "daily_views"]))
@click.option("--sql", "is_sql", is_flag=True, help="Print an expression for DuckDB: read_parquet([...]).")
@output.rows_option(default="one path per line")
@click.pass_obj
def files_(settings: Settings, table: str, is_sql: bool, form: str | None) -> None:
    """List the Parquet files of a table.

    Prints one path per line; every --format adds the partition, the size in bytes and the number of rows. The list is
    valid for an hour. Do not read all files of the folder: it also contains files that compaction has replaced. A
    warning on standard error counts the hits that are still in the hot log.

    daily_views has no files: it is computed from hits. With --sql, the expression groups the files of hits.
    """
    if is_sql and form:
        raise click.UsageError("use either --sql or --format")
    is_view = table == "daily_views"
    if is_view and not is_sql:
        raise click.ClickException(_COMPUTED)
    data_folder.require_hot_log(settings)
    spec = next((spec for spec in TABLES if spec.name == table), HITS_TABLE)
    with closing(SnapshotReader(settings.hot_log, settings.lake, columns=())) as reader:
        listing = reader.take(spec=spec)
    _warn(listing)
    if is_sql and not listing.files:
        raise click.ClickException(f"table {table} has no files yet; run readership flush if hits wait in the hot log")
    if is_sql:
        rows = engine.parquet_by_name(listing.files)
        click.echo(f"({sql_views.DAILY_VIEWS_SQL.format(hits=rows)})" if is_view else rows)
    elif form:
        cells = ((file.path, file.partition, file.size, file.rows) for file in listing.files)
        output.show_rows(listing.files, output.table(("path", "partition", "size", "rows"), cells), form)
    else:
        click.echo("".join(f"{file.path}\n" for file in listing.files), nl=False)


def _warn(listing: Snapshot) -> None:
    """Print how many hits the files lack."""
    if rows := listing.hot.num_rows:
        verb = "is" if rows == 1 else "are"
        waiting = f"{counted(rows, 'hit')} {verb} in the hot log and in no file yet"
        print(f"{waiting}; to load the hot log, run readership flush", file=sys.stderr)
