"""The command `project agent`: the configuration of a project's agent jobs."""

import shlex
from collections.abc import Mapping
from typing import Any

import click
import msgspec

from agent.coding_agent.presets import COMMAND
from agent.errors import InvalidConfiguration, NotConfigured
from agent.jobs import configuration
from agent.jobs.configuration import AGENTS, FORGE_NAMES, Changes, Configuration, changed
from api.cli.options.control_database import opened
from api.cli.output import show, table
from api.settings import Settings
from warehouse.control import projects
from warehouse.database.pool import Pool

_REFERENCE = "env:NAME for an environment variable of the service, or file:/path."


def repository_options(command: Any) -> Any:
    """Add the options that `project create` and `project agent` share."""
    for option in (
        click.option("--ref", help="Branch that jobs start from, and that pull requests are for. [default: main]"),
        click.option("--repository", metavar="URL", help="https URL of the repository that agents work on."),
    ):
        command = option(command)
    return command


@click.command("agent")
@click.argument("id", metavar="PROJECT")
@repository_options
@click.option("--host", "forge", type=click.Choice(FORGE_NAMES), help="Kind of forge. [default: github]")
@click.option("--api-base", metavar="URL", help="URL of the forge's API. [default: derived from the repository's URL]")
@click.option("--git-token", metavar="SECRET", help=f"Token that may push and open pull requests: {_REFERENCE}")
@click.option("--preset", type=click.Choice(AGENTS), help="Coding agent. [default: opencode]")
@click.option("--command", metavar="COMMAND", help="Command of another coding agent; it reads the prompt from stdin.")
@click.option("--model", help="Name of the model, in the form that the coding agent expects.")
@click.option("--model-base", metavar="URL", help="Base URL of the model server. [default: that of the preset]")
@click.option("--model-key", metavar="SECRET", help=f"Key of the model server: {_REFERENCE}")
@click.option("--time-limit-s", type=int, help="Timeout of the coding agent in each turn, in seconds. [default: 3600]")
@click.option(
    "--readable",
    multiple=True,
    metavar="FOLDER",
    help='Folder that the coding agent may read, beside the checkout; may be repeated; "" for none.',
)
@click.option(
    "--sandbox/--no-sandbox", "is_sandboxed", default=None, help="Run the coding agent in bubblewrap. [default: yes]"
)
@click.option(
    "--allow-ci/--refuse-ci",
    default=None,
    help="Push changes of CI configuration, which CI runs at once. [default: no]",
)
@click.option(
    "--publish-prompts/--hide-prompts", default=None, help="Quote prompts in pull requests and commits. [default: yes]"
)
@click.option("--webhook", metavar="URL", help='URL to notify when a job has completed or failed; "" for none.')
@click.option("--webhook-secret", metavar="SECRET", help=f"Key that signs the notifications: {_REFERENCE}")
@click.pass_obj
def agent_(settings: Settings, /, id: str, **options: object) -> None:
    """Show or change how agent jobs of a project run.

    Without an option the configuration is shown; options change only what they name. A secret is never an argument:
    SECRET names the environment variable or the file that contains it.
    """
    control = opened(settings)
    projects.find(control, id)
    changes = _changes(options)
    result = configuration.change(control, id, changes) if changes else _current(control, id)
    if result is None:
        raise click.ClickException(f"project {id} has no repository; set one with --repository URL")
    rows = ((name.replace("_", "-"), _cell(value)) for name, value in msgspec.to_builtins(result).items())
    show(result, table(("setting", "value"), rows))


def new_configuration(repository: str | None, ref: str | None) -> Configuration | None:
    """Return the configuration of a new project; None if neither option is set. Raises InvalidConfiguration."""
    changes = _changes({"repository": repository, "ref": ref})
    return changed(Configuration(repository=""), changes) if changes else None


def _changes(options: Mapping[str, object]) -> Changes:
    """Return the fields of a configuration that options change; None is an option that is not set."""
    changes = {name: value for name, value in options.items() if value is not None and value != ()}
    if changes.get("readable") == ("",):
        changes["readable"] = ()
    if "command" in changes:
        changes = {"preset": COMMAND, **changes, "command": _words(str(changes["command"]))}
    if changes.get("preset", COMMAND) != COMMAND:
        changes.setdefault("command", ())
    return changes


def _words(command: str) -> tuple[str, ...]:
    """Split a command line as a shell does. Raises InvalidConfiguration if a quotation is not closed."""
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        fault = str(error)[:1].lower() + str(error)[1:]
        raise InvalidConfiguration(
            f"--command cannot be split into words: {fault}; quote it as in a shell, such as \"sh -c 'my-agent -v'\""
        ) from None


def _current(control: Pool, id: str) -> Configuration | None:
    try:
        with control.connect() as connection:
            return configuration.load(connection, id)
    except NotConfigured:
        return None


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return shlex.join(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
