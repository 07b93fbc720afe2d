"""The command `import`, which imports access logs once or follows them."""

import gc
import os
from contextlib import nullcontext
from functools import partial

import click

from api.cli.options import network
from api.cli.options.workers import executor, is_chosen, on_option, processes_option
from api.settings import Settings
from ingest.classification.pool import classifier_processes, classify_many
from ingest.formats.detect import NAMES
from ingest.formats.page_filter import Pages
from ingest.imports.files import STDIN
from warehouse.batch.driver import OpenExecutor

AUTO = "auto"


@click.command("import")
@click.argument("project_id", metavar="PROJECT")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--format",
    "form",
    default=AUTO,
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(NAMES)}, or an nginx log_format as it is written in nginx.conf.",
)
@click.option("--include", metavar="GLOB", multiple=True, help="Paths that are pages in spite of their extension.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Paths that are not counted.")
@click.option("--dry-run", is_flag=True, help="Show what an import would do, and store nothing.")
@click.option(
    "--follow", "is_followed", is_flag=True, help="Store lines as they are added, through rotation, until Ctrl-C."
)
@click.option(
    "--despite-loss", is_flag=True, help="Also import lines that may have been imported before a hot log was lost."
)
@processes_option(
    "Parse the chunks of each log in N processes. [default: threads of this process, with child processes for user"
    " agents and JSON logs; with Ray, the cores of the cluster]"
)
@on_option
@network.reverse_dns_option
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
    count: int | None,
    place: str | None,
    is_reverse_dns: bool,
) -> None:
    """Import access logs.

    A FILE may be compressed by gzip, bzip2, xz or zstd; `-` is standard input.

    Page views are stored: GET requests of pages, answered with 2xx or 304. Those that AI agents and bots sent and that
    were answered with 4xx or 5xx are stored as errors, which are no page views. A log is recognised by its content,
    even if it was renamed or compressed: importing the same log again adds nothing, and a log that has grown adds its
    new lines.
    """
    if is_followed and (dry_run or STDIN in files):
        raise click.UsageError("--follow reads files that grow: it takes neither --dry-run nor standard input")
    settings = network.with_options(settings, is_reverse_dns)
    open_executor = None if is_followed else _executor(settings, place, count)
    if is_followed and (place or count):
        raise click.UsageError("--follow reads small pieces: it takes neither --on nor --processes")
    if not is_followed:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's idle thread takes 20 ms of processor time
    with nullcontext(classify_many) if is_followed or open_executor else classifier_processes() as classifier:
        gc.disable()  # imports create no garbage, and the collector takes a sixth of their time
        from api.cli.log_import import reading  # noqa: PLC0415  # Arrow, which has threads, loads after the forks
        from ingest.imports.importer import Options  # noqa: PLC0415  # the same

        gc.freeze()
        gc.enable()
        options = Options(None if form == AUTO else form, Pages(include, exclude), dry_run, is_followed)
        reading.run(reading.Reading(settings, project_id, files, options, classifier, open_executor, despite_loss))


def _executor(settings: Settings, place: str | None, count: int | None) -> OpenExecutor | None:
    """Return the function that opens the executor; None if the threads of this process parse."""
    if not is_chosen(settings, place, count):
        return None
    if settings.reverse_dns:
        raise click.UsageError("workers do not look up reverse DNS: turn it off, or use neither Ray nor --processes")
    return partial(executor, settings, place, count)
