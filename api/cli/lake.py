"""The commands that work on the lake itself: `flush`, `compact`, `rebuild`, `reclassify`,
`retention` and `doctor`."""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial

import click
import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from api import data_folder
from api.cli.output import ERR, OUT, show, table
from api.settings import Settings
from ingest.classification.classifier import RULESET
from ingest.hits.row import classify_user_agents
from warehouse import clock, doctor
from warehouse.doctor import Finding
from warehouse.hotlog import batches
from warehouse.maintenance import compact
from warehouse.maintenance.erase import erase_before, first_trusted_s
from warehouse.maintenance.load import is_due, load
from warehouse.maintenance.reclassify import Reclassified, Rules, preview, reclassify
from warehouse.maintenance.reclassify_diff import Diff
from warehouse.maintenance.rollup import rebuild
from warehouse.plural import counted
from warehouse.query import engine

LOCK_WAIT_S = 300.0
RULES = Rules(RULESET, classify_user_agents)


def _prepare(settings: Settings) -> None:
    """Add what an existing data folder lacks. Raises NoData for any other folder."""
    data_folder.require(settings)
    data_folder.prepare(settings)


@click.command()
@click.pass_obj
def flush(settings: Settings) -> None:
    """Load the hot log into the lake now."""
    _prepare(settings)
    with closing(batches.connect(settings.hot_log)) as hot:
        loaded = load(hot, settings.lake, LOCK_WAIT_S)
    show(loaded, f"{counted(loaded.rows, 'hit')} loaded in {counted(loaded.commits, 'commit')}")


@click.command("compact")
@click.pass_obj
def compact_(settings: Settings) -> None:
    """Rewrite small files into large ones, sorted, and remove what no reader needs any more."""
    _prepare(settings)
    with closing(batches.connect(settings.hot_log)) as hot, closing(engine.connect(settings.run / "spill")) as database:
        between = partial(_load_due, hot, settings)
        done = compact.compact(hot, settings.lake, database, 1, LOCK_WAIT_S, between=between)
        compact.vacuum(hot, settings.lake, LOCK_WAIT_S)
    files = f"{counted(done.files_before, 'file')} into {done.files_after}"
    show(done, f"{counted(done.partitions, 'partition')} rewritten: {files}")


def _load_due(hot: sqlite3.Connection, settings: Settings) -> None:
    """As a service beside would, whose loader does not wait for the lake and so seldom finds it free."""
    if is_due(hot, settings.load_rows, settings.load_every_s, time.time()):
        load(hot, settings.lake, LOCK_WAIT_S)


@click.command("rebuild")
@click.pass_obj
def rebuild_(settings: Settings) -> None:
    """Count daily_views anew from hits, month by month, while the service runs.

    For when the doctor finds that they differ. It may be cut short and repeated.
    """
    _prepare(settings)
    began = time.monotonic()
    with (
        _progress("months") as on_month,
        closing(batches.connect(settings.hot_log)) as hot,
        closing(engine.connect(settings.run / "spill")) as database,
    ):
        done = rebuild(hot, settings.lake, database, LOCK_WAIT_S, on_month)
    seconds = time.monotonic() - began
    show(
        {**msgspec.to_builtins(done), "seconds": round(seconds, 1)},
        f"{counted(done.months, 'month')} rebuilt in {seconds:.1f} s: {counted(done.views, 'view')};"
        " next: readership doctor",
    )


@click.command("reclassify")
@click.option("--dry-run", is_flag=True, help="Show what would move; change nothing.")
@click.pass_obj
def reclassify_(settings: Settings, dry_run: bool) -> None:
    """Give stored hits the traffic and rule that today's rules give their user agents, while the service runs.

    Day by day, only where another version of the rules was at work; what waits in the hot log is loaded first. It may
    be cut short and repeated. A service that was not restarted since the rules changed still stores by the old ones.
    """
    _prepare(settings)
    began = time.monotonic()
    with (
        _progress("days") as on_day,
        closing(batches.connect(settings.hot_log)) as hot,
        closing(engine.connect(settings.run / "spill")) as database,
    ):
        call = preview if dry_run else reclassify
        done = call(hot, settings.lake, database, RULES, LOCK_WAIT_S, on_day)
    seconds = time.monotonic() - began
    if sys.stdout.isatty():
        for each in _moves_tables(done.moves):
            OUT.print(each)
    show(
        {"dry_run": dry_run, "ruleset": RULESET, **msgspec.to_builtins(done), "seconds": round(seconds, 1)},
        _said(done, seconds, dry_run),
    )


def _said(done: Reclassified, seconds: float, dry_run: bool) -> str:
    if not done.days:
        return f"all hits stand under today's rules ({RULESET}): nothing to do"
    changes = ", ".join(f"{each.hits:+,} {each.traffic}" for each in done.moves.by_traffic) or "no change of traffic"
    looked = (
        f"{counted(done.hits, 'hit')} of older rules on {counted(done.days, 'day')},"
        f" {counted(done.user_agents, 'user agent')}"
    )
    moves = f"{counted(done.moves.hits, 'hit')} {'would move' if dry_run else 'moved'}"
    moved = f"{changes}; {moves} on {counted(done.moves.paths, 'path')}"
    following = "readership reclassify" if dry_run else "readership doctor"
    return f"{looked}: {moved}, in {seconds:.1f} s; next: {following}"


@click.command()
@click.option("--yes", is_flag=True, help="Confirm that the clock is right, although it jumped.")
@click.pass_obj
def retention(settings: Settings, yes: bool) -> None:
    """Remove hits that are older than READERSHIP_RETENTION_DAYS now, while the service runs.

    A service does this each hour, but removes nothing for a day after the clock jumped by more than a week.
    """
    days = settings.retention_days
    if not (days or yes):
        raise click.ClickException("READERSHIP_RETENTION_DAYS is not set: hits of any age are stored")
    data_folder.require(settings)
    data_folder.prepare(settings)
    now = datetime.fromtimestamp(time.time(), UTC)
    with closing(batches.connect(settings.hot_log)) as hot, closing(engine.connect(settings.run / "spill")) as database:
        if yes:
            clock.record(settings.lake, clock.Clock(now.timestamp()))
        else:
            load(hot, settings.lake, LOCK_WAIT_S)  # the clock of a new folder is compared with its newest hit
            newest_s = partial(first_trusted_s, settings.lake, database, now.timestamp())
            if not clock.observe(settings.lake, now.timestamp(), newest_s).is_trusted:
                raise click.ClickException(str(clock.warning(settings.lake)))
        removed = erase_before(hot, settings.lake, now.date(), days, LOCK_WAIT_S) if days else 0
    show({"removed": removed}, f"{counted(removed, 'hit')} removed")


@click.command("doctor")
@click.pass_obj
def doctor_(settings: Settings) -> None:
    """Check every invariant of the data. Exit status 1 if one does not hold."""
    data_folder.require_hot_log(settings)
    findings = list(doctor.examine(settings.hot_log, settings.lake, settings.run / "spill", LOCK_WAIT_S))
    show(findings, _findings_table(findings))
    if any(finding.fault for finding in findings):
        sys.exit(1)


@contextmanager
def _progress(unit: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, told how many are done of how many."""
    columns = TextColumn(unit), MofNCompleteColumn(), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal) as progress:
        task = progress.add_task(unit, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def _findings_table(findings: list[Finding]) -> Table:
    return table(("invariant", "finding"), ((finding.invariant, finding.fault or "holds") for finding in findings))


def _moves_tables(moves: Diff) -> list[Table]:
    """Which hits moved from one rule to another, and by how many each kind of traffic and each agent grew."""
    if not moves.hits:
        return []
    by_rule = (
        (f"{each.old_traffic} {each.old_rule}", f"{each.new_traffic} {each.new_rule}", each.hits, each.paths)
        for each in moves.by_rule
    )
    changes = ((each.traffic, each.agent or "", f"{each.hits:+,}") for each in (*moves.by_traffic, *moves.by_agent))
    return [
        table(("old traffic and rule", "new traffic and rule", "hits", "paths"), by_rule),
        table(("traffic", "agent", "change"), changes),
    ]
