"""The command `move`: its options, progress and output."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
import msgspec
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from api.cli.move import moving, places
from api.cli.move.moving import Done, Watch
from api.cli.move.places import DATABASE_URL, LAKE_URI, Places
from api.cli.output import ERR, LOCK_WAIT_S, show, table
from api.settings import Settings
from warehouse import doctor
from warehouse.doctor import Finding
from warehouse.plural import counted


@click.command("move")
@click.option("--to", multiple=True, metavar="URL", help="New place: postgresql://..., s3://..., gs://... or az://...")
@click.pass_obj
def move(settings: Settings, to: tuple[str, ...]) -> None:
    """Move the stores of a data folder to PostgreSQL, to an object store, or to both.

    Without --to, the new places are READERSHIP_DATABASE_URL and READERSHIP_LAKE, which no other user of the machine can
    see. Stop the service first. The database and the prefix must be empty. The data folder stays as it is, but is
    refused by all commands that do not use the new places.

    After an interruption, run the command again: it continues. Exits with status 1 if the check at the end finds that
    an invariant of the data is violated.
    """
    chosen = places.choose(os.environ, settings, to)
    with _progress() as watch:
        done = moving.move(chosen, watch)
    findings = list(doctor.examine(chosen.after.hot_log, chosen.after.lake, chosen.after.run / "spill", LOCK_WAIT_S))
    faults = [finding for finding in findings if finding.fault]
    show({**msgspec.to_builtins(done), "findings": findings}, table(("moved", ""), _lines(done, findings)))
    ERR.print(_next(chosen, faults), soft_wrap=True, markup=False)
    if faults:
        sys.exit(1)


def _lines(done: Done, findings: list[Finding]) -> Iterator[tuple[str, str]]:
    for name, rows in done.rows.items():
        yield f"table {name}", counted(rows, "row")
    if done.files:
        yield "lake", f"{counted(done.files, 'file')}, {counted(done.bytes, 'byte')}"
    for finding in findings:
        yield finding.invariant, finding.fault or "ok"


def _next(chosen: Places, faults: list[Finding]) -> str:
    """Return what the owner does next."""
    settings = []
    if chosen.server is not None:
        settings.append(f"{DATABASE_URL} to the URL of {chosen.server.database}")
    if chosen.lake is not None:
        settings.append(f"{LAKE_URI} to {chosen.lake}")
    text = f"moved; next: set {' and '.join(settings)}, then run readership serve"
    return text if not faults else f"{text}; the check found {counted(len(faults), 'fault')}"


@contextmanager
def _progress() -> Iterator[Watch]:
    """Show the progress on a terminal, and yield the functions that are called during the move."""
    columns = TextColumn("{task.description}"), TaskProgressColumn(), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=ERR, transient=True, disable=not ERR.is_terminal) as progress:
        files, rows = (progress.add_task(name, total=None) for name in ("lake", "databases"))

        def start(rows_total: int, bytes_total: int) -> None:
            progress.update(rows, total=rows_total)
            progress.update(files, total=bytes_total)

        yield Watch(
            warn=lambda text: ERR.print(text, soft_wrap=True, markup=False),
            on_start=start,
            on_rows=lambda count: progress.update(rows, advance=count),
            on_bytes=lambda count: progress.update(files, advance=count),
        )
