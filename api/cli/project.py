"""The commands that change the control database: `project` and `key`."""

import time
from contextlib import closing
from datetime import UTC, datetime

import click

from agent.git import workspace
from agent.jobs import configuration, store
from api import cache, data_folder, keys
from api.cli import agent
from api.cli.output import ERR, show, table
from api.control_database import created, opened
from api.keys import Key, Scope
from api.settings import Settings
from ingest.hotlog import deduplication
from ingest.imports import ledger
from warehouse.control import projects
from warehouse.control.projects import Project
from warehouse.hotlog import batches, refusals, wal
from warehouse.maintenance.erase import erase_project
from warehouse.plural import counted
from warehouse.query import engine as query

LOCK_WAIT_S = 300.0
DAY_S = 86_400
SCOPES_HELP = "read: exports. ingest: posts hits and nothing else. write: everything, agent jobs too."


@click.group()
def project() -> None:
    """Sites whose views are kept apart."""


@project.command("create")
@click.argument("id")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Origin of its pages, such as https://example.com; * for any.",
)
@agent.options
@click.pass_obj
def create_project(
    settings: Settings, id: str, origins: tuple[str, ...], repository: str | None, ref: str | None
) -> None:
    """Add a project; without an origin it takes no beacons from pages of browsers."""
    engine = created(settings)
    chosen = agent.asked({"repository": repository, "ref": ref})
    made = projects.create(engine, id, origins, int(time.time()))
    if chosen:
        configuration.store(engine, id, chosen)
    show(_public(made), f"project {made.id} created; next: readership key create {made.id}")


@project.command("origins")
@click.argument("id")
@click.argument("origins", metavar="ORIGIN...", nargs=-1)
@click.pass_obj
def set_origins(settings: Settings, id: str, origins: tuple[str, ...]) -> None:
    """Replace the origins whose pages may send beacons."""
    engine = opened(settings)
    projects.set_origins(engine, id, origins)
    made = projects.find(engine, id)
    show(_public(made), f"project {id} takes beacons from {', '.join(made.origins) or 'no page'}")


@project.command("list")
@click.pass_obj
def list_projects(settings: Settings) -> None:
    """Show all projects."""
    found = projects.list_all(opened(settings))
    rows = ((each.id, ", ".join(each.origins), _day(each.created_s)) for each in found)
    show([_public(each) for each in found], table(("project", "origins", "created"), rows))


def _public(found: Project) -> dict[str, object]:
    """Return a project as JSON has it, without the internal id."""
    return {"id": found.id, "origins": found.origins, "created_s": found.created_s}


@project.command("delete")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete_project(settings: Settings, id: str, yes: bool) -> None:
    """Remove a project, its keys, its agent jobs and its views. It may be repeated if it was cut short.

    The files that held them leave the disk within two hours of a running service, or by `readership compact`.
    """
    engine = opened(settings)
    data_folder.require(settings)
    data_folder.prepare_lake(settings)
    if not yes:
        click.confirm(f"Remove project {id} and all its views?", abort=True, err=True)
    internal_id = projects.begin_deletion(engine, id)
    keys.revoke_all(engine, id, int(time.time()))
    jobs = store.remove(engine, id)  # at once: those who work on them learn of it by their next heartbeat
    time.sleep(cache.TTL_S)  # HTTP processes have the project in their cache until then
    for job in jobs:
        workspace.discard(settings.jobs / job)
    with closing(batches.connect(settings.hot_log)) as hot, closing(query.connect(settings.run / "spill")) as database:
        refusals.add(hot, internal_id)  # from here on nothing of the project is stored, whenever its request began
        removed = erase_project(hot, settings.lake, database, id, LOCK_WAIT_S)
        deduplication.delete_project(hot, id)
        ledger.forget_project(hot, id)
        wal.empty(hot)
    projects.delete(engine, id)
    show({"id": id, "hits": removed}, f"project {id} removed, with {counted(removed, 'hit')}")


project.add_command(agent.agent_)


@click.group()
def key() -> None:
    """API keys."""


@key.command("create")
@click.argument("project_id", metavar="PROJECT")
@click.option("--name", default="", help="What it is for.")
@click.option("--scope", type=click.Choice(keys.SCOPES), default="write", show_default=True, help=SCOPES_HELP)
@click.option("--expires-days", type=click.IntRange(1, 36_500), help="Ends by itself after so many days.")
@click.pass_obj
def create_key(settings: Settings, project_id: str, name: str, scope: Scope, expires_days: int | None) -> None:
    """Make a key and print it, alone, on standard output. It is shown this once."""
    now_s = int(time.time())
    expires_s = now_s + expires_days * DAY_S if expires_days else None
    made, token = keys.create(opened(settings), project_id, name, scope, expires_s, now_s)
    ERR.print(f"key {made.id} of project {project_id}, scope {scope}; it is not shown again:", highlight=False)
    click.echo(token)


@key.command("list")
@click.argument("project_id", metavar="[PROJECT]", required=False)
@click.pass_obj
def list_keys(settings: Settings, project_id: str | None) -> None:
    """Show the keys, of all projects or of one."""
    engine = opened(settings)
    if project_id is not None:
        projects.find(engine, project_id)
    found = keys.list_all(engine, project_id)
    rows = (
        (
            each.id,
            each.project,
            each.name,
            each.scope,
            _day(each.created_s),
            _day(each.expires_s),
            _day(each.last_used_s),
            _state(each),
        )
        for each in found
    )
    show(found, table(("id", "project", "name", "scope", "created", "expires", "last used", "state"), rows))


@key.command("revoke")
@click.argument("which", metavar="ID")
@click.pass_obj
def revoke_key(settings: Settings, which: str) -> None:
    """End a key for good, named by its id, its name, or the key itself. It stops within 5 seconds everywhere."""
    engine = opened(settings)
    found = keys.find(engine, which)
    keys.revoke(engine, found.id, int(time.time()))
    show({"id": found.id, "revoked": True}, f"key {found.id} of project {found.project} revoked")


def _state(each: Key) -> str:
    if each.revoked_s is not None:
        return "revoked"
    return "good" if each.is_valid(time.time()) else "expired"


def _day(instant_s: int | None) -> str:
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y-%m-%d %H:%M") if instant_s else ""
