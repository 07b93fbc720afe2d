"""The command `goal`: the goals of a project, and with them the conversions of its visitors."""

import click

from api import goals as definitions
from api.cli.options.control_database import opened
from api.cli.output import minute, rows_format, show, show_rows, table
from api.settings import Settings
from warehouse.control import goals, projects
from warehouse.control.goals import Kind
from warehouse.errors import GoalNotFound


@click.group()
def goal() -> None:
    """Add, list and remove goals: a page that visitors reach, or an event."""


@goal.command("add")
@click.argument("project")
@click.argument("name")
@click.option(
    "--path", metavar="PATH", help="A path, the paths with a prefix ('/order/*') or with a part ('*thanks*')."
)
@click.option("--event", metavar="NAME", help="The name of an event.")
@click.pass_obj
def add_goal(settings: Settings, project: str, name: str, path: str | None, event: str | None) -> None:
    """Add a goal. Reports apply it to all stored days."""
    if (path is None) == (event is None):
        raise click.UsageError("use either --path or --event")
    kind: Kind = "event" if path is None else "path"
    added = definitions.add(opened(settings), project, name, kind, path or event or "")
    show(added, f"goal {added.name} added: {added.kind} {added.value}")


@goal.command("list")
@click.argument("project")
@rows_format
@click.pass_obj
def list_goals(settings: Settings, project: str, form: str | None) -> None:
    """List the goals of a project."""
    control = opened(settings)
    projects.find(control, project)
    listed = goals.of_project(control, project)
    rows = ((each.name, each.kind, each.value, minute(each.created_s), each.id) for each in listed)
    show_rows(listed, table(("name", "kind", "value", "created", "id"), rows), form)


@goal.command("remove")
@click.argument("project")
@click.argument("name")
@click.pass_obj
def remove_goal(settings: Settings, project: str, name: str) -> None:
    """Remove a goal. Hits and events stay."""
    control = opened(settings)
    found = next((each for each in goals.of_project(control, project) if each.name == name), None)
    if found is None:
        raise GoalNotFound(f"the project {project!r} has no goal {name!r}")
    goals.remove(control, project, found.id)
    show({"id": found.id, "removed": True}, f"goal {found.name} removed")
