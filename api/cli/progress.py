"""What the command `import` shows on a terminal: its progress, and a table in the end.

Apart from what it does, which needs none of the library that draws them.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn

from api.cli.output import ERR, OUT, table
from ingest.imports.chunk import Summary


@contextmanager
def progress(size: int | None) -> Iterator[Callable[[int, int], None]]:
    """A bar over so many bytes, gone in the end; to be told of bytes as they are read, and of lines."""
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


def show(found: Summary, seconds: float, is_dry_run: bool) -> None:
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
        *((f"not read: {file}", reason) for file, reason in found.unreadable.items()),
        ("seconds", f"{seconds:.1f}"),
        ("lines/s", round(found.lines / seconds)),
    ]
    OUT.print(table(("", "count"), rows, title="Dry run: nothing is stored" if is_dry_run else None))
