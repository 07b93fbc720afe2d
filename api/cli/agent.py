"""The command `project agent`: what a project's agent jobs need to know."""

import shlex
from typing import Any

import click
import msgspec
import sqlalchemy as sa

from agent.coding_agent.presets import COMMAND
from agent.errors import InvalidConfiguration, NotConfigured
from agent.jobs import configuration
from agent.jobs.configuration import AGENTS, FORGE_NAMES, Configuration, changed
from api.cli.output import show, table
from api.control_database import opened
from api.settings import Settings
from warehouse.control import projects

_NAMED = "where it is: env:NAME or file:/path."


def options(command: Any) -> Any:
    """The options that `project create` has, too."""
    for option in (
        click.option("--ref", help="Branch that jobs start from and pull requests are for. [default: main]"),
        click.option("--repository", metavar="URL", help="https URL of the repository that agents work on."),
    ):
        command = option(command)
    return command


@click.command("agent")
@click.argument("id", metavar="PROJECT")
@options
@click.option("--host", "forge", type=click.Choice(FORGE_NAMES), help="Kind of forge. [default: github]")
@click.option("--api-base", metavar="URL", help="Of the code host's API; told by the repository's URL if not given.")
@click.option("--git-token", metavar="WHERE", help=f"Token that may push and open pull requests: {_NAMED}")
@click.option("--git-user", metavar="NAME", help="Whose the token is, at a code host that asks: pagure.")
@click.option("--preset", type=click.Choice(AGENTS), help="The coding agent. [default: opencode]")
@click.option("--command", metavar="COMMAND", help="Any other coding agent; the prompt is its input.")
@click.option("--model", help="Name of the model, as the coding agent takes it.")
@click.option("--model-base", metavar="URL", help="Base URL of the model server; the preset's own if not given.")
@click.option("--model-key", metavar="WHERE", help=f"Key of the model server: {_NAMED}")
@click.option("--time-limit-s", type=int, help="Of one turn's coding agent. [default: 3600]")
@click.option(
    "--readable", multiple=True, metavar="FOLDER", help="One more that the coding agent may read; empty: none."
)
@click.option("--sandbox/--no-sandbox", "is_sandboxed", default=None, help="Whether it is kept in bubblewrap.")
@click.option("--webhook", metavar="URL", help="Told when a job has completed or failed; empty for none.")
@click.option("--webhook-secret", metavar="WHERE", help=f"Key of its signature: {_NAMED}")
@click.pass_obj
def agent_(settings: Settings, /, id: str, **given: Any) -> None:
    """Set what a project's agent jobs need; without an option, show it. Secrets are named, never given."""
    engine = opened(settings)
    projects.find(engine, id)
    known = _known(engine, id)
    chosen = _asked(given)
    made = changed(known or Configuration(repository=""), chosen) if chosen else known
    if made is None:
        raise click.ClickException(f"project {id} has no repository; set one with --repository URL")
    if chosen:
        configuration.store(engine, id, made)
    show(
        made,
        table(
            ("setting", "value"),
            ((name.replace("_", "-"), _shown(value)) for name, value in msgspec.to_builtins(made).items()),
        ),
    )


def asked(given: dict[str, Any]) -> Configuration | None:
    """The configuration of a project that is to be made, if there is to be one. Raises InvalidConfiguration."""
    chosen = _asked(given)
    return changed(Configuration(repository=""), chosen) if chosen else None


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given."""
    chosen = {name: value for name, value in given.items() if value is not None and value != ()}
    if chosen.get("readable") == ("",):
        chosen["readable"] = ()
    if "command" in chosen:
        chosen = {"preset": COMMAND, **chosen, "command": _words(chosen["command"])}
    if chosen.get("preset", COMMAND) != COMMAND:
        chosen.setdefault("command", ())
    return chosen


def _words(command: str) -> tuple[str, ...]:
    """Split a command line as a shell does. Raises InvalidConfiguration."""
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        fault = str(error)[:1].lower() + str(error)[1:]
        raise InvalidConfiguration(
            f"--command cannot be split into words: {fault}; quote it as in a shell, such as \"sh -c 'my-agent -v'\""
        ) from None


def _known(engine: sa.Engine, id: str) -> Configuration | None:
    try:
        with engine.connect() as connection:
            return configuration.load(connection, id)
    except NotConfigured:
        return None


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return shlex.join(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
