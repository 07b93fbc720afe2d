"""The commands that work on the lake: `flush`, `compact`, `rebuild`, `reclassify`, `retention` and `doctor`."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import click
import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from api import data_folder
from api.cli.options.control_database import opened
from api.cli.options.workers import executor, on_option, processes_option
from api.cli.output import ERR, LOCK_WAIT_S, OUT, rows_format, show, show_rows, table
from api.settings import Settings
from ingest.classification.classifier import RULESET
from ingest.errors import InvalidAddressList
from ingest.hits.row import classify_user_agents
from ingest.hotlog import ledger_store
from ingest.verification import address_lists
from warehouse import clock, doctor
from warehouse.batch.driver import Executor
from warehouse.control import projects, source_policies
from warehouse.database.pool import PoolError
from warehouse.doctor import Finding
from warehouse.errors import WarehouseError
from warehouse.hotlog import batches
from warehouse.hotlog.connection import HotConnection
from warehouse.maintenance import double_counting, rollups, upkeep
from warehouse.maintenance.erase import erase_before, first_trusted_s
from warehouse.maintenance.load import is_due, load
from warehouse.maintenance.reclassification.diff import Diff
from warehouse.maintenance.reclassification.reclassify import Reclassified, Rules, reclassify
from warehouse.plural import counted
from warehouse.query import engine

COUNTED_ONCE = "no two sources of a project count the same view"
LISTS = "the address lists can be read, and are new enough to find spoofed requests"
RULES = Rules(RULESET, classify_user_agents)


def _prepare(settings: Settings) -> None:
    """Create missing parts of a data folder. Raises NoData if the folder has no data."""
    data_folder.require(settings)
    data_folder.prepare(settings)


@contextmanager
def _opened(
    settings: Settings, place: str | None, count: int | None
) -> Iterator[tuple[HotConnection, engine.Share, Executor]]:
    """Yield the hot log of a prepared data folder, and the share of DuckDB's memory and the executor of batch work."""
    _prepare(settings)
    with executor(settings, place, count) as chosen, closing(batches.connect(settings.hot_log)) as hot:
        yield hot, engine.Share(settings.run / "spill", chosen.size), chosen


@click.command()
@click.pass_obj
def flush(settings: Settings) -> None:
    """Load the hits that wait in the hot log into the lake."""
    _prepare(settings)
    with closing(batches.connect(settings.hot_log)) as hot:
        loaded = load(hot, settings.lake, LOCK_WAIT_S)
    show(loaded, f"{counted(loaded.rows, 'hit')} loaded in {counted(loaded.commits, 'commit')}")


@click.command("compact")
@processes_option(
    "Number of partitions (days, or months of counts) that are sorted at a time, each in a process with 256 MB for"
    " DuckDB. [default: one in this process; with Ray, the cores of the cluster]"
)
@on_option
@click.pass_obj
def compact_(settings: Settings, count: int | None, place: str | None) -> None:
    """Merge small files of the lake, write its rollups, and delete unused files.

    Rows are sorted, and partial counts of requests are added up. A partition that fails, such as for a damaged
    file, does not prevent the rest of the work; its error is printed at the end, and the exit status is 1. The command
    may run beside a service.
    """
    with _opened(settings, place, count) as (hot, share, chosen):
        progress, between = partial(_progress, "rollups"), partial(_load_due, hot, settings)
        today = datetime.now(UTC).date()
        done = upkeep.run(hot, settings.lake, share, today, LOCK_WAIT_S, progress, executor=chosen, between=between)
    compacted, written = done.compacted, counted(done.rollups, "rollup")
    files = f"{counted(compacted.files_before, 'file')} into {compacted.files_after}"
    show(
        {**msgspec.to_builtins(compacted), "rollups": done.rollups},
        f"{counted(compacted.partitions, 'partition')} rewritten: {files}; {written} written",
    )


def _load_due(hot: HotConnection, settings: Settings) -> None:
    """Load the hot log if that is due.

    The loader of a service does not wait for the lock of the lake, and rarely gets the lock during a compaction.
    """
    if is_due(hot, settings.load_rows, settings.load_every_s, time.time()):
        load(hot, settings.lake, LOCK_WAIT_S)


@click.command("rebuild")
@processes_option(
    "Number of months whose rollups are written at a time, each in a process with 256 MB for DuckDB."
    " [default: 1; with Ray, the cores of the cluster]"
)
@on_option
@click.pass_obj
def rebuild_(settings: Settings, count: int | None, place: str | None) -> None:
    """Write all rollups again, from hits.

    Run this command if doctor finds that a rollup is damaged or differs from hits. The command works month by month,
    and may run beside a service. After an interruption, run the command again.
    """
    start_s, today = time.monotonic(), datetime.now(UTC).date()
    with _opened(settings, place, count) as (hot, share, chosen), _progress("rollups") as on_month:
        written = rollups.rebuild(hot, settings.lake, share, today, LOCK_WAIT_S, on_month, chosen)
    seconds = time.monotonic() - start_s
    show(
        {"rollups": written.rollups, "seconds": round(seconds, 1)},
        f"{counted(written.rollups, 'rollup')} written in {seconds:.1f} s; next: readership doctor",
    )


@click.command("reclassify")
@click.option("--dry-run", is_flag=True, help="Show which hits would change; change nothing.")
@processes_option(
    "Number of days that are rewritten at a time, each in a process with 256 MB for DuckDB."
    " [default: one in this process; with Ray, the cores of the cluster]"
)
@on_option
@click.pass_obj
def reclassify_(settings: Settings, dry_run: bool, count: int | None, place: str | None) -> None:
    """Apply the current classification rules to stored hits.

    The command loads the hot log, and then rewrites each day that has hits of another version of the rules. It may run
    beside a service, but restart the service first: until then, the service classifies new hits by the old rules. After
    an interruption, run the command again.
    """
    start_s, lake = time.monotonic(), settings.lake
    with _opened(settings, place, count) as (hot, share, chosen), _progress("days") as on_day:
        done = reclassify(hot, lake, share, RULES, LOCK_WAIT_S, on_day, executor=chosen, is_preview=dry_run)
    seconds = time.monotonic() - start_s
    if sys.stdout.isatty():
        for each in _diff_tables(done.moves):
            OUT.print(each)
    show(
        {"dry_run": dry_run, "ruleset": RULESET, **msgspec.to_builtins(done), "seconds": round(seconds, 1)},
        _summary(done, seconds, dry_run),
    )


def _summary(done: Reclassified, seconds: float, dry_run: bool) -> str:
    if not done.days:
        return f"all hits have the current rules ({RULESET}): nothing to do"
    changes = ", ".join(f"{each.hits:+,} {each.traffic}" for each in done.moves.by_traffic) or "no change of traffic"
    examined = (
        f"{counted(done.hits, 'hit')} of other rules on {counted(done.days, 'day')},"
        f" {counted(done.user_agents, 'user agent')}"
    )
    changed = f"{counted(done.moves.hits, 'hit')} {'would change' if dry_run else 'changed'}"
    next_command = "readership reclassify" if dry_run else "readership doctor"
    return (
        f"{examined}: {changes}; {changed} on {counted(done.moves.paths, 'path')}, in {seconds:.1f} s;"
        f" next: {next_command}"
    )


@click.command()
@click.option("--yes", is_flag=True, help="Confirm that the clock is right, and trust it again.")
@click.pass_obj
def retention(settings: Settings, yes: bool) -> None:
    """Delete hits older than READERSHIP_RETENTION_DAYS days.

    A service does so every hour, except in the 24 hours after its clock jumped by more than 7 days. --yes confirms the
    new time, also if no retention is set. The command may run beside a service.
    """
    days = settings.retention_days
    if not (days or yes):
        raise click.ClickException("READERSHIP_RETENTION_DAYS is not set: set it to a number of days")
    _prepare(settings)
    now = datetime.now(UTC)
    share = engine.Share(settings.run / "spill")
    with closing(batches.connect(settings.hot_log)) as hot:
        if yes:
            clock.record(settings.lake.local, clock.Clock(now.timestamp()))
        else:
            # Loaded first, because the clock of a new folder is compared with the newest hit in the lake.
            load(hot, settings.lake, LOCK_WAIT_S)
            newest_s = partial(first_trusted_s, settings.lake, share, now.timestamp())
            if not clock.observe(settings.lake.local, now.timestamp(), newest_s).is_trusted:
                raise click.ClickException(str(clock.warning(settings.lake.local)))
        removed = erase_before(hot, settings.lake, now.date(), days, LOCK_WAIT_S) if days else 0
        if days:
            ledger_store.delete_before(hot, now.date() - timedelta(days=days))
        rollups.write_stale(hot, settings.lake, share, now.date(), LOCK_WAIT_S)
    show({"removed": removed}, f"{counted(removed, 'hit')} deleted")


@click.command("doctor")
@rows_format
@click.pass_obj
def doctor_(settings: Settings, form: str | None) -> None:
    """Check the data, and list each invariant that is violated.

    A warning names what the owner should check, and is no violation. The exit status is 1 if an invariant is violated.
    The command may run beside a service.
    """
    data_folder.require_hot_log(settings)
    spill = settings.run / "spill"
    findings = list(doctor.examine(settings.hot_log, settings.lake, spill, LOCK_WAIT_S, settings.late_s))
    if not any(finding.fault for finding in findings):
        findings += _double_counting(settings)
    findings.append(_address_lists(settings))
    rows = ((each.invariant, each.fault or (f"warning: {each.warning}" if each.warning else "ok")) for each in findings)
    show_rows(findings, table(("invariant", "finding"), rows), form)
    if any(finding.fault for finding in findings):
        sys.exit(1)


def _double_counting(settings: Settings) -> list[Finding]:
    """Return a finding for each project whose views are counted twice; one without a warning if there is none."""
    try:
        control = opened(settings)
        policies = {each.id: source_policies.periods(control, each.id) for each in projects.list_all(control)}
        by_project = double_counting.find(settings.hot_log, settings.lake, settings.run / "spill", policies)
    except (WarehouseError, PoolError) as error:
        first_line = str(error).partition("\n")[0]
        return [Finding(COUNTED_ONCE, None, f"cannot be checked: {first_line}")]
    texts = [double_counting.advice(project, text) for project, warnings in by_project.items() for text in warnings]
    return [Finding(COUNTED_ONCE, None, text) for text in texts] or [Finding(COUNTED_ONCE, None)]


def _address_lists(settings: Settings) -> Finding:
    """Return a warning if the address lists are old, and a fault if a list of the owner is damaged."""
    try:
        lists = address_lists.current(settings.ranges)
    except InvalidAddressList as error:
        return Finding(LISTS, str(error))
    warning = address_lists.age_warning(lists, datetime.now(UTC))
    return Finding(LISTS, None, warning and f"{warning.text()}; {settings.refresh_lists}")


@contextmanager
def _progress(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal; yield a function that takes the number of finished units and the total."""
    columns = TextColumn(unit), MofNCompleteColumn(), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal) as progress:
        task = progress.add_task(unit, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _diff_tables(diff: Diff) -> list[Table]:
    """Return the hits that changed from one rule to another, and the changes of each kind of traffic and each agent."""
    if not diff.hits:
        return []
    by_rule = (
        (f"{each.old_traffic} {each.old_rule}", f"{each.new_traffic} {each.new_rule}", each.hits, each.paths)
        for each in diff.by_rule
    )
    changes = ((each.traffic, each.agent or "", f"{each.hits:+,}") for each in (*diff.by_traffic, *diff.by_agent))
    return [
        table(("old traffic and rule", "new traffic and rule", "hits", "paths"), by_rule),
        table(("traffic", "agent", "change"), changes),
    ]
