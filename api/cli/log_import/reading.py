"""The work of the command `import`: import or follow logs, and print the summary."""

import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from api import data_folder, logs
from api.settings import Settings
from ingest.classification.pool import Classifier
from ingest.hits.row import Site
from ingest.hotlog import ledger_store
from ingest.imports import files
from ingest.imports.chunk import Summary
from ingest.imports.importer import Import, Options, import_logs
from ingest.imports.tail import follow
from ingest.verification import address_lists
from ingest.verification import verifier as verifiers
from ingest.visitors.salts import Salts, open_salts
from warehouse.batch.driver import OpenExecutor
from warehouse.control import database, projects, source_policies
from warehouse.control.projects import Check
from warehouse.hotlog import batches
from warehouse.integrity import completeness
from warehouse.maintenance import double_counting

LOG = logging.getLogger("readership.import")
NO_ORIGIN = (
    "without your site's origin, a visit to a second page is no evidence of a person: run readership project origins"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """Logs of a project, and how they are read: `classifier` and `executor` have processes beside this one.

    `despite_loss` imports lines that may have been imported before the record of imported logs was lost.
    """

    settings: Settings
    project_id: str
    names: Sequence[str]
    options: Options
    classifier: Classifier
    executor: OpenExecutor | None
    despite_loss: bool
    secret: bytes = b""


def run(reading: Reading) -> None:
    """Import or follow the logs, and print the summary."""
    settings, project_id, options = reading.settings, reading.project_id, reading.options
    began = time.monotonic()
    if options.is_growing:
        logs.configure(settings.log_level)
    data_folder.require_control_database(settings)
    # Deleting a project erases its views and its ledger; an import that continued would store the views again.
    with projects.repeated_check(settings.database_url, project_id) as check:
        if options.is_dry_run:
            data_folder.require_hot_log(settings)
        else:
            data_folder.prepare_lake(settings)
        reading = replace(reading, secret=data_folder.secret(settings))
        if not reading.despite_loss:
            options = replace(options, ledger_from_us=ledger_from_us(settings, project_id, reading.secret))
        with closing(database.connect(settings.database_url)) as control:
            own = projects.find(control, project_id).hosts
        options = replace(options, site=Site(own, settings.country_database))
        reading = replace(reading, options=options)
        summary = _follow(reading, check) if options.is_growing else _import(reading, check)
    seconds = time.monotonic() - began
    if sys.stdout.isatty():
        from api.cli.log_import import progress  # noqa: PLC0415  # it loads Rich

        progress.show(summary, seconds, options.is_dry_run)
    else:
        click.echo(msgspec.json.encode(_summary_json(summary, seconds, options.is_dry_run)))
    if not (options.is_dry_run or options.is_growing):
        for text in warnings(settings, project_id, summary):
            click.echo(f"Warning: {text}", err=True)


def ledger_from_us(settings: Settings, project_id: str, secret: bytes) -> int:
    """Return the time, in microseconds since 1970, before which the record of imported logs is lost; 0 for never.

    The record is lost with its hot log, or with the control database that has its secret.
    """
    with closing(batches.connect(settings.hot_log)) as hot:
        ledger_store.create(hot)
        foreign_s = ledger_store.foreign_until_s(ledger_store.Ledger(hot, project_id, secret))
    return round(max(completeness.ledger_from_s(settings.hot_log, settings.lake), foreign_s) * 1_000_000)


def _import(reading: Reading, check: Check) -> Summary:
    settings, names = reading.settings, reading.names
    sizes = [files.size(file) for file in files.expand(names)]
    size = None if None in sizes else sum(size or 0 for size in sizes)
    with (
        _progress(size) as on_read,
        closing(batches.connect(settings.hot_log)) as hot,
        closing(verifiers.create(settings.ranges, is_reverse_dns=settings.reverse_dns)) as verifier,
        closing(_salts(reading)) as salts,
        reading.executor() if reading.executor else nullcontext() as executor,
    ):
        where = hot, settings.lake, reading.project_id, names, reading.secret, time.time
        return import_logs(*where, reading.options, on_read, reading.classifier, check, verifier, executor, salts)


def _salts(reading: Reading) -> Salts:
    is_on = reading.settings.visitors and not reading.options.is_dry_run
    return open_salts(reading.settings.database_url, reading.settings.data, is_on=is_on)


def _progress(size: int | None) -> AbstractContextManager[Callable[[int, int], None]]:
    if not sys.stderr.isatty():
        return nullcontext(lambda count, lines: None)
    from api.cli.log_import import progress  # noqa: PLC0415  # it loads Rich

    return progress.progress(size)


def _follow(reading: Reading, check: Check) -> Summary:
    """Follow the logs, with the maintenance tasks of a service, because the command may run without one."""
    from api.background import open_scheduler  # noqa: PLC0415  # it also loads the classes of the service

    settings, names = reading.settings, reading.names
    stop_signals: list[int] = []  # not an Event: the code that a signal interrupts may hold its lock
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stop_signals.append(received))
    files.require_readable([file for file in files.expand(names) if Path(file).exists()])
    due = followed(settings, reading.project_id)

    def wait(seconds: float) -> bool:
        for text in due(following.summary, time.monotonic()):
            LOG.warning("%s", text)
        if not stop_signals:
            time.sleep(seconds)
        return bool(stop_signals)

    maintenance = open_scheduler(settings)
    maintenance.start()
    try:
        with (
            closing(batches.connect(settings.hot_log)) as hot,
            closing(verifiers.create(settings.ranges, is_reverse_dns=settings.reverse_dns)) as verifier,
            closing(_salts(reading)) as salts,
        ):
            where = hot, settings.lake, reading.project_id, reading.secret, time.time
            following = Import(*where, reading.options, verifier=verifier, check=check, salts=salts)
            LOG.info("Following %s; Ctrl-C ends it", ", ".join(names))
            follow(following, names, wait, LOG.info)
            return following.summary
    finally:
        maintenance.close()


def _summary_json(summary: Summary, seconds: float, is_dry_run: bool) -> dict[str, Any]:
    return {
        **{field.name: getattr(summary, field.name) for field in fields(summary)},
        "page_views": summary.page_views,
        "dry_run": is_dry_run,
        "seconds": round(seconds, 3),
        "lines_per_s": round(summary.lines / seconds),
    }


CHECK_S = 24 * 3600
"""Minimum time between two checks of a followed log, in seconds."""


def warnings(settings: Settings, project_id: str, summary: Summary) -> list[str]:
    """Return the warnings about an import: old address lists, people who count twice, visitors who are not known."""
    of_people = (*_counted_twice(settings, project_id, summary.human), *_not_known(settings, project_id, summary.human))
    return [*_old_lists(settings, summary.ai), *of_people]


def _old_lists(settings: Settings, views: int) -> list[str]:
    old = address_lists.age_warning(address_lists.current(settings.ranges), datetime.now(UTC)) if views else None
    return [f"{old.text()}; run {settings.command} ranges refresh"] if old else []


def _counted_twice(settings: Settings, project_id: str, views: int) -> list[str]:
    if not views or not double_counting.has_beacons(settings.lake, project_id):
        return []
    with closing(database.connect(settings.database_url)) as control:
        policies = {project_id: source_policies.periods(control, project_id)}
    by_project = double_counting.find(settings.hot_log, settings.lake, settings.run / "spill", policies)
    return [double_counting.advice(project_id, text) for text in by_project.get(project_id, ())]


def _not_known(settings: Settings, project_id: str, views: int) -> list[str]:
    """Return the warnings about a proxy that is not trusted, and about links that are no evidence of a person."""
    if not views or not settings.visitors:
        return []
    with (
        closing(open_salts(settings.database_url, settings.data)) as salts,
        closing(database.connect(settings.database_url)) as control,
    ):
        is_hint = sys.stderr.isatty() and not projects.find(control, project_id).hosts  # not in the mail of a cron job
        return [*map(str, salts.warnings(project_id)), *([f"{NO_ORIGIN} {project_id} ORIGIN"] if is_hint else [])]


@dataclass
class DailyCheck:
    """Check of a followed log: at its first views by AI or people, and then at most once a day."""

    check: Callable[[int], list[str]]
    views: int = 0
    due_s: float = 0.0

    def warnings(self, views: int, now_s: float) -> list[str]:
        """Return the warnings if a check is due. `views` is the number of views that were stored so far."""
        if views == self.views or now_s < self.due_s:
            return []
        self.views, self.due_s = views, now_s + CHECK_S
        return self.check(views)


def followed(settings: Settings, project_id: str) -> Callable[[Summary, float], list[str]]:
    """Return a function of a summary and a time in seconds, whose result are the warnings that are due."""
    lists = DailyCheck(partial(_old_lists, settings))
    people = DailyCheck(partial(_counted_twice, settings, project_id))
    return lambda summary, now_s: [*lists.warnings(summary.ai, now_s), *people.warnings(summary.human, now_s)]
