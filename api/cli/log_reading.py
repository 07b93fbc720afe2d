"""What the command `import` does, shows while it does it, and tells in the end."""

import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import msgspec

from api import data_folder, logs
from api.settings import Settings
from ingest.classification.pool import Classifier
from ingest.imports import files
from ingest.imports.chunk import Summary
from ingest.imports.importer import Import, Options, import_logs
from ingest.imports.tail import follow
from warehouse import folder
from warehouse.control import project_check
from warehouse.control.project_check import Check
from warehouse.hotlog import batches
from warehouse.integrity import completeness

LOG = logging.getLogger("readership.import")


def run(
    settings: Settings,
    project_id: str,
    names: Sequence[str],
    options: Options,
    classifier: Classifier,
    despite_loss: bool,
) -> None:
    """Read the logs, those that grow until Ctrl-C, and show what they said.

    `despite_loss`: also lines that may have been imported before the record of imported logs was lost.
    """
    began = time.monotonic()
    if options.is_growing:
        logs.configure(settings.log_level)
    data_folder.require_control_database(settings)
    with _checked(settings, project_id) as check:
        if options.is_dry_run:
            data_folder.require_hot_log(settings)
        else:
            data_folder.prepare_lake(settings)
        if not despite_loss:
            options = replace(options, ledger_from_us=ledger_from_us(settings))
        if options.is_growing:
            found = _follow(settings, project_id, names, options, check)
        else:
            found = _import(settings, project_id, names, options, classifier, check)
    seconds = time.monotonic() - began
    if sys.stdout.isatty():
        from api.cli import progress  # noqa: PLC0415  # see there

        progress.show(found, seconds, options.is_dry_run)
    else:
        click.echo(msgspec.json.encode(_told(found, seconds, options.is_dry_run)))


def _checked(settings: Settings, project_id: str) -> AbstractContextManager[Check]:
    """A check that the project is still there: its views and what was read of its logs are erased together, so that
    an import that went on would bring the views back."""
    if settings.database_url == folder.sqlite_url(settings.control):
        return project_check.sqlite_check(settings.control, project_id)
    return project_check.engine_check(settings.database_url, project_id)


def ledger_from_us(settings: Settings) -> int:
    """Return the time, in microseconds since 1970, before which the record of imported logs is lost; 0 for never."""
    return round(completeness.ledger_from_s(settings.hot_log, settings.lake) * 1_000_000)


def _import(  # what to read, where to, and how
    settings: Settings, project_id: str, names: Sequence[str], options: Options, classifier: Classifier, check: Check
) -> Summary:
    sizes = [files.size(file) for file in files.expand(names)]
    size = None if None in sizes else sum(size or 0 for size in sizes)
    with _progress(size) as on_read, closing(batches.connect(settings.hot_log)) as hot:
        return import_logs(hot, settings.lake, project_id, names, time.time, options, on_read, classifier, check)


def _progress(size: int | None) -> AbstractContextManager[Callable[[int, int], None]]:
    if not sys.stderr.isatty():
        return nullcontext(lambda count, lines: None)
    from api.cli import progress  # noqa: PLC0415  # see there

    return progress.progress(size)


def _follow(settings: Settings, project_id: str, names: Sequence[str], options: Options, check: Check) -> Summary:
    """With the upkeep that a service would do, so that this command may run alone or beside one."""
    from api.maintenance import Maintenance  # noqa: PLC0415  # it brings half of the service with it

    ends: list[int] = []  # not an Event: its lock may be held where a handler finds the program
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda given, _: ends.append(given))
    files.require_readable([file for file in files.expand(names) if Path(file).exists()])
    maintenance = Maintenance(settings)
    maintenance.start()
    try:
        with closing(batches.connect(settings.hot_log)) as hot:
            run = Import(hot, settings.lake, project_id, time.time, options, check=check)
            LOG.info("Following %s; Ctrl-C ends it", ", ".join(names))
            follow(
                run,
                names,
                lambda seconds: _is_over(ends, seconds),
                LOG.info,
            )
            return run.summary
    finally:
        maintenance.close()


def _is_over(ends: list[int], seconds: float) -> bool:
    if not ends:
        time.sleep(seconds)
    return bool(ends)


def _told(found: Summary, seconds: float, is_dry_run: bool) -> dict[str, Any]:
    """What an import did, for a program."""
    return {
        **{field.name: getattr(found, field.name) for field in fields(found)},
        "page_views": found.page_views,
        "dry_run": is_dry_run,
        "seconds": round(seconds, 3),
        "lines_per_s": round(found.lines / seconds),
    }
