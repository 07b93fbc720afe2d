"""The command `import`: access logs into the lake, once or as they grow."""

import gc
import os
from contextlib import nullcontext

import click

from api.settings import Settings
from ingest.classification.pool import classify_many, helped
from ingest.formats.detect import NAMES
from ingest.formats.page_filter import Pages
from ingest.imports.files import STDIN

AUTO = "auto"
PURGE_DELAY_MS = 1_000


@click.command("import")
@click.argument("project_id", metavar="PROJECT")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    default=AUTO,
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(NAMES)}, or an nginx log_format as it stands in nginx.conf.",
)
@click.option("--include", metavar="GLOB", multiple=True, help="Paths that are pages, whatever their extension.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Paths that are not counted.")
@click.option("--dry-run", is_flag=True, help="Say what would happen, and store nothing.")
@click.option("--follow", "is_followed", is_flag=True, help="Go on with what is added, through rotation, until Ctrl-C.")
@click.option("--despite-loss", is_flag=True, help="Import lines of before the record of imported logs was lost.")
@click.pass_obj
def import_(  # noqa: PLR0913, PLR0917  # an option each
    settings: Settings,
    project_id: str,
    files: tuple[str, ...],
    form: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    dry_run: bool,
    is_followed: bool,
    despite_loss: bool,
) -> None:
    """Read access logs into the lake: plain, or packed by gzip, bzip2, xz or zstd; `-` is standard input.

    Page views alone are taken: GET, answered 2xx or 304, of pages. What was read before is known by its content: the
    same log again adds nothing, one that has grown its new lines, also when it was renamed or packed meanwhile.
    """
    if is_followed and (dry_run or STDIN in files):
        raise click.UsageError("--follow reads files that grow: it takes neither --dry-run nor standard input")
    with nullcontext(classify_many) if is_followed else helped() as classifier:
        if not is_followed:  # to give Arrow's memory back in milliseconds and take it again takes a tenth of the time
            os.environ.setdefault("MIMALLOC_PURGE_DELAY", str(PURGE_DELAY_MS))
        gc.disable()  # of what is loaded here nothing is garbage, and to look for some takes a sixth of the time
        from api.cli import log_reading  # noqa: PLC0415  # it loads libraries with threads: see `helped`
        from ingest.imports.importer import Options  # noqa: PLC0415  # the same

        gc.freeze()
        gc.enable()
        options = Options(None if form == AUTO else form, Pages(include, exclude), dry_run, is_followed)
        log_reading.run(settings, project_id, files, options, classifier, despite_loss)
