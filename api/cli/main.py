"""The program `readership`: it loads the module of the command that is called, and prints errors."""

import errno
import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import click

from agent.errors import InvalidConfiguration
from api.errors import AccountError, AddressInUse, FolderInUse, InvalidSetting, KeyNotFound
from api.server import memory
from api.settings import DATA, DEMO_DATA, read
from ingest.errors import IngestError
from warehouse.database.pool import PoolError
from warehouse.database_errors import Cause, cause_of, is_damage, reason_of
from warehouse.errors import ProjectNotFound, WarehouseError, engine_errors
from warehouse.hotlog.connection import HOT_LOG_ERRORS

COMMANDS: Mapping[str, str] = {
    "serve": "api.cli.serve:serve_",
    "worker": "api.cli.worker:worker",
    "demo": "api.cli.demo.command:demo_",
    "project": "api.cli.project:project",
    "goal": "api.cli.goal.command:goal",
    "key": "api.cli.project:key",
    "user": "api.cli.user:user",
    "import": "api.cli.log_import.command:import_",
    "classify": "api.cli.sql:classify_",
    "sql": "api.cli.sql:sql_",
    "files": "api.cli.sql:files_",
    "ranges": "api.cli.ranges:ranges",
    "flush": "api.cli.lake:flush",
    "compact": "api.cli.lake:compact_",
    "rebuild": "api.cli.lake:rebuild_",
    "reclassify": "api.cli.lake:reclassify_",
    "doctor": "api.cli.lake:doctor_",
    "retention": "api.cli.lake:retention",
    "settings": "api.cli.options.settings:settings_",
    "recover": "api.cli.recover:recover",
    "move": "api.cli.move.command:move",
}
"""Module and function of each command. Only the called command is imported, which halves the start time."""
ALLOCATORS = dict.fromkeys(("serve", "demo"), memory.CHOICES) | {"import": memory.CHOICES_OF_IMPORT}
"""Allocators of the commands in which Arrow allocates memory with jemalloc: see `memory.choose_allocators`."""
EXPECTED_ERRORS = (
    InvalidSetting,
    AddressInUse,
    FolderInUse,
    KeyNotFound,
    AccountError,
    IngestError,
    WarehouseError,
    InvalidConfiguration,
    OSError,
    *HOT_LOG_ERRORS,
)
"""Errors that an operator can act on: printed as one line, with exit status 1. Any other error is a bug, and prints its
traceback."""

_CAUSES = {
    errno.EACCES: "this user has no permission",
    errno.EEXIST: "there is a file in place of a folder",
    errno.EIO: "the disk cannot be read or written",
    errno.EMFILE: "too many files are open; raise the limit with ulimit -n",
    errno.ENOENT: "there is no such file",
    errno.ENOSPC: "the disk is full",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EPERM: "this user has no permission",
}
"""Causes in the words of this program. The words of the C library are shown for any other error."""
_NUMBER = re.compile(r"\[errno -?[0-9]+\] ?", re.IGNORECASE)
"""Number of an error in the text that Python prints: "[Errno 2] No such file or directory: '/x'"."""
DATA_HELP = "Data folder. [default: $READERSHIP_DATA, else ./data, or ./data-demo for demo]"


def os_error_message(error: OSError) -> str:
    """Return the cause and the path of an error, without the error's number."""
    text = _NUMBER.sub("", error.strerror or str(error))
    if error.errno in _CAUSES and text == os.strerror(error.errno):  # a library may name the file in its text
        text = _CAUSES[error.errno]
    return text if error.filename is None else f"{error.filename}: {text}"


def _message(error: Exception) -> str | None:
    """Return the message of an error that an operator can act on, with its notes; None for a bug."""
    advice = ""
    if isinstance(error, EXPECTED_ERRORS):
        text = os_error_message(error) if isinstance(error, OSError) else str(error)
        if isinstance(error, ProjectNotFound):
            text += f"; readership project list shows all, and readership project create {error.id} adds it"
        elif is_damage(error):
            text += "; readership recover checks whether the hot log is damaged"
    elif isinstance(error, PoolError):
        if cause_of(error) is Cause.PROGRAM:
            return None
        text = f"the control database: {reason_of(error)}"
    elif isinstance(error, engine_errors()):
        text, advice = str(error).partition("\n")[0], "; if it happens again, run readership doctor"
    else:
        return None
    return "; ".join([text, *getattr(error, "__notes__", [])]) + advice


class Commands(click.Group):
    """The commands of the program. An expected error of a command is printed as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in ALLOCATORS:
            memory.choose_allocators(ALLOCATORS[cmd_name])
        module, name = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click prints these itself, and ends silently if the reader of standard output is gone
        except ExceptionGroup as group:
            messages = [_message(error) for error in group.exceptions]
            if None in messages:
                raise
            lines = dict.fromkeys(f"\n- {message}" for message in messages)
            raise click.ClickException(f"{group.message}:{''.join(lines)}") from None
        except Exception as error:
            message = _message(error)
            if message is None:
                raise
            raise click.ClickException(message) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--data", type=click.Path(path_type=Path), help=DATA_HELP)
@click.version_option(package_name="readership")
@click.pass_context
def main(ctx: click.Context, data: Path | None) -> None:
    """Page-view analytics that distinguish people, AI agents and other bots.

    Results go to standard output: a table on a terminal, JSON when piped. Everything else goes to standard error.
    """
    command = ctx.invoked_subcommand
    ctx.obj = read(os.environ, data, DEMO_DATA if command == "demo" else DATA, is_moving=command == "move")


def run() -> NoReturn:
    """Run `main`, and exit without finalising the interpreter and its libraries.

    Finalisation takes 0.1 s, and 0.2 s after an import.

    Arrow tries to import dateutil for each Python value that it converts. If dateutil is not installed, Python would
    search for the module each time, which takes 31 µs. An import of a JSON log converts 50 values for 11,000 lines.
    """
    if find_spec("dateutil") is None:
        sys.modules["dateutil"] = None  # type: ignore[assignment]  # makes the import fail at once
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
