"""The command line: `readership`. Results go to standard output, everything else to standard error."""

import errno
import os
import re
import sqlite3
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from agent.errors import InvalidConfiguration
from api.errors import AddressInUse, FolderInUse, InvalidSetting, KeyNotFound
from api.settings import DATA, DEMO_DATA, read
from ingest.errors import IngestError
from warehouse.database_errors import Cause, cause_of, is_damage, reason_of
from warehouse.errors import WarehouseError, control_errors, engine_errors

COMMANDS: Mapping[str, str] = {
    "serve": "api.cli.serve:serve_",
    "worker": "api.cli.worker:worker",
    "demo": "api.cli.serve:demo_",
    "project": "api.cli.project:project",
    "key": "api.cli.project:key",
    "import": "api.cli.log_import:import_",
    "classify": "api.cli.sql:classify_",
    "sql": "api.cli.sql:sql_",
    "files": "api.cli.sql:files_",
    "flush": "api.cli.lake:flush",
    "compact": "api.cli.lake:compact_",
    "rebuild": "api.cli.lake:rebuild_",
    "reclassify": "api.cli.lake:reclassify_",
    "doctor": "api.cli.lake:doctor_",
    "retention": "api.cli.lake:retention",
    "recover": "api.cli.recover:recover",
}
"""Where each is: only the one that is called is loaded, which halves the time until it begins."""
TOLD = (
    InvalidSetting,
    AddressInUse,
    FolderInUse,
    KeyNotFound,
    IngestError,
    WarehouseError,
    InvalidConfiguration,
    OSError,
    sqlite3.DatabaseError,
)
"""Errors that a person can act on: one line, exit status 1, as for a control database that does not answer. Any other
is a fault of ours, with its traceback."""

_WITH_PATH = {
    errno.EACCES: "this user has no permission to open {path}",
    errno.EEXIST: "{path} is a file, not a folder",
    errno.EIO: "the disk cannot read or write {path}",
    errno.EISDIR: "{path} is a folder, not a file",
    errno.ENOENT: "there is no file {path}",
    errno.ENOSPC: "the disk is full: {path} cannot be written",
    errno.ENOTDIR: "{path} cannot be created: a part of its path is a file, not a folder",
    errno.EPERM: "this user has no permission to change {path}",
    errno.EROFS: "{path} is on a read-only file system",
}
_WITHOUT_PATH = {
    errno.EIO: "the disk cannot be read or written",
    errno.EMFILE: "too many files are open; raise the limit with ulimit -n",
    errno.ENOSPC: "the disk is full",
}
_NUMBER = re.compile(r"\[errno -?[0-9]+\] ?", re.IGNORECASE)
"""Number of an error in its text: Python prints "[Errno 2] No such file or directory: '/x'"."""
DATA_HELP = "The data folder. [default: $READERSHIP_DATA, or ./data, or ./data-demo for demo]"


def sentence(error: OSError) -> str:
    """Return what happened to which path, without the number of the error."""
    if error.filename is not None and error.errno in _WITH_PATH:
        return _WITH_PATH[error.errno].format(path=error.filename)
    if error.errno in _WITHOUT_PATH:
        return _WITHOUT_PATH[error.errno]
    text = _NUMBER.sub("", error.strerror or str(error))
    return text if error.filename is None else f"{error.filename}: {text}"


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click tells these itself, and ends without a word when who read our output has gone
        except TOLD as error:
            text = sentence(error) if isinstance(error, OSError) else str(error)
            if is_damage(error):
                text += "; readership recover names the file if it is the hot log"
            raise click.ClickException("; ".join([text, *getattr(error, "__notes__", [])])) from None
        except control_errors() as error:
            if cause_of(error) is Cause.PROGRAM:
                raise
            raise click.ClickException(f"the control database: {reason_of(error)}") from None
        except engine_errors() as error:
            said = str(error).partition("\n")[0]
            raise click.ClickException(f"{said}; if it comes again, run readership doctor") from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data", type=click.Path(path_type=Path), help=DATA_HELP)
@click.version_option(package_name="readership")
@click.pass_context
def main(ctx: click.Context, data: Path | None) -> None:
    """Page-view analytics that tell who reads a site: people, or AI."""
    ctx.obj = read(os.environ, data, DEMO_DATA if ctx.invoked_subcommand == "demo" else DATA)


def run() -> NoReturn:
    """`main` as a process, which ends at once when all is done and said.

    To take the interpreter and its libraries down first takes 0.1 s, and 0.2 after an import.
    """
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
