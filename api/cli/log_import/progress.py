"""Terminal output of the command `import`: a progress bar, and a table of the summary.

A module of its own, because an import without a terminal does not need to load Rich.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn

from api.cli.output import ERR, OUT, table
from ingest.imports.chunk import Summary


@contextmanager
def progress(size: int | None) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar of `size` bytes, if known; yield the function that adds numbers of bytes and lines."""
    bar = Progress(
        BarColumn(),
        TaskProgressColumn(),
        _Speed(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=ERR,
        transient=True,
        disable=not ERR.is_terminal,
    )
    lines_read = 0

    def on_read(count: int, lines: int) -> None:
        nonlocal lines_read
        lines_read += lines
        bar.update(task, advance=count, lines=lines_read)

    with bar:
        task = bar.add_task("import", total=size, lines=0)
        yield on_read


class _Speed(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> str:  # type: ignore[override]
        lines = task.fields["lines"]
        return f"{lines:,} lines, {lines / max(task.elapsed or 0, 0.001):,.0f} lines/s"


def show(summary: Summary, seconds: float, is_dry_run: bool) -> None:
    """Print the number of lines, of page views by traffic and agent, and of skipped lines by reason."""
    rows: list[tuple[object, ...]] = [
        ("lines", summary.lines),
        ("page views", summary.page_views),
        ("  human", summary.human),
        ("  AI", summary.ai),
        *((f"    {agent}", views) for agent, views in summary.agents.most_common()),
        ("  other bots", summary.bot),
        ("errors that AI agents and bots got", summary.errors),
        *([("with a text that was cut", summary.cut)] if summary.cut else []),
        ("skipped", sum(summary.skipped.values())),
        *((f"  {reason.replace('_', ' ')}", lines) for reason, lines in summary.skipped.most_common()),
        *((f"    {file}:{number}", reason) for file, number, reason in summary.malformed),
        *([("read before", summary.known)] if summary.known else []),
        *((f"format of {file}", form) for file, form in summary.formats.items()),
        *((f"not read: {file}", reason) for file, reason in summary.unreadable.items()),
        ("seconds", f"{seconds:.1f}"),
        ("lines/s", round(summary.lines / seconds)),
    ]
    OUT.print(table(("", "count"), rows, title="Dry run: nothing is stored" if is_dry_run else None))
