"""What the command `import` does, shows while it does it, and tells in the end."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from api import data_folder
from api.output import ERR, show, table
from api.settings import Settings
from ingest import log_file
from ingest.follow import follow
from ingest.import_log import Import, Options, Summary, import_logs
from ingest.second_core import Describe
from warehouse import batches, control, projects

Check = Callable[[], None]


def run(settings: Settings, project_id: str, files: Sequence[str], options: Options, describe: Describe) -> None:
    """Read the logs, those that grow until Ctrl-C, and show what they said."""
    began = time.monotonic()
    data_folder.prepare(settings)
    with _checked(settings, project_id) as check:
        if options.is_growing:
            found = _follow(settings, project_id, files, options, check)
        else:
            found = _import(settings, project_id, files, options, describe, check)
    seconds = time.monotonic() - began
    show(_told(found, seconds, options.is_dry_run), _table(found, seconds, options.is_dry_run))


@contextmanager
def _checked(settings: Settings, project_id: str) -> Iterator[Check]:
    """A check that the project is still there: its views and what was read of its logs are erased together, so that
    an import that went on would bring the views back."""
    engine = control.connect(settings.database_url)

    def check() -> None:
        projects.find(engine, project_id)

    try:
        check()
        yield check
    finally:
        engine.dispose()


def _import(  # what to read, where to, and how
    settings: Settings, project_id: str, files: Sequence[str], options: Options, describe: Describe, check: Check
) -> Summary:
    sizes = [log_file.size(file) for file in log_file.matched(files)]
    with _progress() as progress, closing(batches.connect(settings.hot_log)) as hot:
        task = progress.add_task("import", total=None if None in sizes else sum(size or 0 for size in sizes), lines=0)
        read = [0]

        def on_read(count: int, lines: int) -> None:
            read[0] += lines
            progress.update(task, advance=count, lines=read[0])

        return import_logs(hot, settings.lake, project_id, files, time.time, options, on_read, describe, check)


def _follow(settings: Settings, project_id: str, files: Sequence[str], options: Options, check: Check) -> Summary:
    """With the upkeep that a service would do, so that this command may run alone or beside one."""
    from api.upkeep import Upkeep  # noqa: PLC0415  # it brings half of the service with it

    ends: list[int] = []  # not an Event: its lock may be held where a handler finds the program
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda given, _: ends.append(given))
    log_file.try_each([file for file in log_file.matched(files) if Path(file).exists()])
    upkeep = Upkeep(settings)
    upkeep.start()
    try:
        with closing(batches.connect(settings.hot_log)) as hot:
            run = Import(hot, settings.lake, project_id, time.time, options, check=check)
            ERR.print(f"Following {', '.join(files)}; Ctrl-C ends it", highlight=False, markup=False, soft_wrap=True)
            follow(
                run,
                files,
                lambda seconds: _is_over(ends, seconds),
                lambda text: ERR.print(text, highlight=False, markup=False, soft_wrap=True),
            )
            return run.summary
    finally:
        upkeep.close()


def _is_over(ends: list[int], seconds: float) -> bool:
    if not ends:
        time.sleep(seconds)
    return bool(ends)


class _Speed(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> str:  # type: ignore[override]
        lines = task.fields["lines"]
        return f"{lines:,} lines, {lines / max(task.elapsed or 0, 0.001):,.0f} lines/s"


def _progress() -> Progress:
    return Progress(
        BarColumn(),
        TaskProgressColumn(),
        _Speed(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        disable=not ERR.is_terminal,
    )


def _told(found: Summary, seconds: float, is_dry_run: bool) -> dict[str, Any]:
    """What an import did, for a program."""
    return {
        **{field.name: getattr(found, field.name) for field in fields(found)},
        "page_views": found.page_views,
        "dry_run": is_dry_run,
        "seconds": round(seconds, 3),
        "lines_per_s": round(found.lines / seconds),
    }


def _table(found: Summary, seconds: float, is_dry_run: bool) -> Table:
    """Lines, page views by who made them, and skipped lines by reason."""
    rows: list[tuple[object, ...]] = [
        ("lines", found.lines),
        ("page views", found.page_views),
        ("  human", found.human),
        ("  AI", found.ai),
        *((f"    {agent}", views) for agent, views in found.agents.most_common()),
        ("  other bots", found.bot),
        ("skipped", sum(found.skipped.values())),
        *((f"  {reason.replace('_', ' ')}", lines) for reason, lines in found.skipped.most_common()),
        *((f"    {file}:{number}", reason) for file, number, reason in found.malformed),
        *([("read before", found.known)] if found.known else []),
        *((f"format of {file}", form) for file, form in found.formats.items()),
        ("seconds", f"{seconds:.1f}"),
        ("lines/s", round(found.lines / seconds)),
    ]
    return table(("", "count"), rows, title="Dry run: nothing is stored" if is_dry_run else None)
