"""The commands `project` and `key`: projects with their origins and source policies, and API keys."""

import time
from datetime import date, datetime

import click

from agent.jobs import configuration
from api import data_folder
from api.accounts import keys
from api.accounts.keys import Key, Scope
from api.cli import agent, deletion
from api.cli.options import policy_choices
from api.cli.options.control_database import created, opened
from api.cli.output import ERR, minute, rows_format, show, show_rows, table
from api.settings import Settings
from ingest.errors import InvalidField
from ingest.hits.url import normalize_filter
from warehouse.control import projects, source_policies
from warehouse.control.policy import DEFAULT, POLICIES, TEXTS, Period, Policy
from warehouse.control.projects import Project
from warehouse.maintenance.erase import Chosen
from warehouse.plural import counted

DAY_S = 86_400
SCOPES_HELP = "ingest: posts of hits only. read: exports and job states. write: everything, also agent jobs."


@click.group()
def project() -> None:
    """Create, configure, list and delete projects (sites)."""


@project.command("create")
@click.argument("id")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Origin of the site's pages, such as https://example.com; may be repeated; * for any.",
)
@agent.repository_options
@click.pass_obj
def create_project(
    settings: Settings, id: str, origins: tuple[str, ...], repository: str | None, ref: str | None
) -> None:
    """Create a project.

    Without an origin, the project accepts no beacons from browsers: see project origins.
    """
    engine = created(settings)
    configured = agent.new_configuration(repository, ref)
    new_project = projects.create(engine, id, origins, int(time.time()))
    if configured:
        configuration.store(engine, id, configured)
    show(_public(new_project), f"project {id} created; next: {settings.command} key create {id}")


@project.command("origins")
@click.argument("id")
@click.argument("origins", metavar="ORIGIN...", nargs=-1)
@click.pass_obj
def set_origins(settings: Settings, id: str, origins: tuple[str, ...]) -> None:
    """Replace the list of origins whose pages may send beacons."""
    engine = opened(settings)
    projects.set_origins(engine, id, origins)
    changed = projects.find(engine, id)
    show(_public(changed), f"project {id} accepts beacons from {', '.join(changed.origins) or 'no origin'}")


@project.command("list")
@rows_format
@click.pass_obj
def list_projects(settings: Settings, form: str | None) -> None:
    """List all projects."""
    listed = projects.list_all(opened(settings))
    rows = ((each.id, ", ".join(each.origins), minute(each.created_s)) for each in listed)
    show_rows([_public(each) for each in listed], table(("project", "origins", "created"), rows), form)


@project.command(
    "policy",
    help="\n\n".join(
        (
            "Show or set which sources of a project count.",
            *(f"{name}: {text}" for name, text in TEXTS.items()),
            "The rows of hits never change. A policy from a day on replaces those from later days.",
            "Standard error gets the number of views that each choice leaves out, before its day and from then on.",
        )
    ),
)
@click.argument("id", metavar="PROJECT")
@click.argument("policy", type=click.Choice(POLICIES), required=False)
@click.option(
    "--from",
    "from_date",
    type=click.DateTime(["%Y-%m-%d"]),
    help="First UTC day. [default: day of the first hit of the source that the policy prefers]",
)
@rows_format
@click.pass_obj
def set_policy(
    settings: Settings, id: str, policy: Policy | None, from_date: datetime | None, form: str | None
) -> None:
    """Show or set which sources of a project count."""
    engine = opened(settings)
    projects.find(engine, id)
    if policy is None and from_date is not None:
        raise click.UsageError("--from needs a policy")
    choices = policy_choices.choices_of(settings, id, source_policies.periods(engine, id))
    if policy is not None:
        first = from_date.date() if from_date else choices.first_day(policy)
        source_policies.put(engine, id, policy, first)
        policy_choices.show(choices, [(policy, first)])
    else:
        policy_choices.show(choices, [(each, choices.first_day(each)) for each in POLICIES])
    periods = source_policies.periods(engine, id) or (Period(date.min, DEFAULT),)
    days = [None if each.from_date == date.min else each.from_date.isoformat() for each in periods]
    shown = [{"from": day, "policy": each.policy} for day, each in zip(days, periods, strict=True)]
    rows = ((day or "all days", each.policy) for day, each in zip(days, periods, strict=True))
    show_rows(shown, table(("from", "policy"), rows), form)


def _public(project: Project) -> dict[str, object]:
    """Return the fields of a project that are shown: all but the internal id."""
    return {"id": project.id, "origins": project.origins, "created_s": project.created_s}


@project.command("delete")
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def delete_project(settings: Settings, id: str, yes: bool) -> None:
    """Delete a project with its keys, agent jobs and views.

    Files that contained the views are deleted by a running service within two hours, or by readership compact. After an
    interruption, run the command again.
    """
    engine = opened(settings)
    data_folder.require(settings)
    data_folder.prepare_lake(settings)
    internal_id = projects.internal_id_of(engine, id)
    if not yes:
        click.confirm(f"Delete project {id} and all its views?", abort=True, err=True)
    removed = deletion.delete_project(settings, engine, id, internal_id)
    show({"id": id, "hits": removed}, f"project {id} deleted, with {counted(removed, 'hit')}")


@project.command("delete-hits")
@click.argument("id", metavar="PROJECT")
@click.option("--from", "first", type=click.DateTime(["%Y-%m-%d"]), help="First UTC day. [default: the first one]")
@click.option("--to", "end", type=click.DateTime(["%Y-%m-%d"]), help="Day after the last one. [default: no end]")
@click.option("--path", help="Only hits of this path, or of all paths with a prefix: '/old/*'.")
@click.option("--yes", is_flag=True, help="Delete the hits; without it, they are only counted.")
@rows_format
@click.pass_obj
def delete_hits(
    settings: Settings,
    id: str,
    first: datetime | None,
    end: datetime | None,
    path: str | None,
    yes: bool,
    form: str | None,
) -> None:
    """Delete hits that should never have come in, such as those of a test. Cannot be undone.

    Prints the hits and errors of each day and traffic, and deletes them with --yes. What was imported stays known: the
    same log, or the same event ids, do not bring the hits back.
    """
    if first is None and end is None:
        raise click.UsageError("name the days with --from, --to, or both; --to is the day after the last one")
    if first and end and first >= end:
        fault = f"--to {end.date()} is not after --from {first.date()}"
        raise click.UsageError(f"{fault}: it is the day after the last one")
    try:
        path = None if path is None else normalize_filter(path)
    except InvalidField as error:
        raise click.UsageError(f"--path {path} {error.reason}") from None
    control = opened(settings)
    projects.find(control, id)
    data_folder.require(settings)
    data_folder.prepare_lake(settings)
    chosen = Chosen(id, first and first.date(), end and end.date(), path)
    rows = deletion.count_hits(settings, chosen)
    shown = [(each.day, each.traffic, f"{each.hits:,}", f"{each.errors:,}") for each in rows]
    show_rows([each._asdict() for each in rows], table(("day", "traffic", "hits", "errors"), shown), form)
    hits, errors = counted(sum(each.hits for each in rows), "hit"), counted(sum(each.errors for each in rows), "error")
    if not yes:
        ERR.print(f"Nothing was deleted. With --yes, this command deletes {hits} and {errors}.")
    elif rows:
        deletion.delete_hits(settings, control, chosen)
        ERR.print(f"{hits} and {errors} deleted")


project.add_command(agent.agent_)


@click.group()
def key() -> None:
    """Create, list and revoke API keys."""


@key.command("create")
@click.argument("project_id", metavar="PROJECT")
@click.option("--name", default="", help="Purpose of the key, shown by key list.")
@click.option("--scope", type=click.Choice(keys.SCOPES), default="ingest", show_default=True, help=SCOPES_HELP)
@click.option("--expires-days", type=click.IntRange(1, 36_500), help="Days until the key expires. [default: never]")
@click.pass_obj
def create_key(settings: Settings, project_id: str, name: str, scope: Scope, expires_days: int | None) -> None:
    """Create a key, and print it.

    Standard output gets the key and nothing else. The key cannot be shown again.
    """
    now_s = int(time.time())
    expires_s = now_s + expires_days * DAY_S if expires_days else None
    new_key, token = keys.create(opened(settings), project_id, name, scope, expires_s, now_s)
    ERR.print(f"key {new_key.id} of project {project_id}, scope {scope}; the key is shown only once:", highlight=False)
    click.echo(token)


@key.command("list")
@click.argument("project_id", metavar="[PROJECT]", required=False)
@rows_format
@click.pass_obj
def list_keys(settings: Settings, project_id: str | None, form: str | None) -> None:
    """List the keys of one project, or of all."""
    engine = opened(settings)
    if project_id is not None:
        projects.find(engine, project_id)
    listed = keys.list_all(engine, project_id)
    times = (map(minute, (each.created_s, each.expires_s, each.last_used_s)) for each in listed)
    rows = (
        (each.id, each.start, each.project, each.name, each.scope, *three, _state(each))
        for each, three in zip(listed, times, strict=True)
    )
    columns = ("id", "starts with", "project", "name", "scope", "created", "expires", "last used", "state")
    show_rows(listed, table(columns, rows), form)


@key.command("revoke")
@click.argument("key", metavar="ID|START|KEY|NAME")
@click.option("--project", "project_id", metavar="PROJECT", help="Project of the key; a name needs it.")
@click.pass_obj
def revoke_key(settings: Settings, key: str, project_id: str | None) -> None:
    """Revoke a valid key for good.

    The argument is the key itself, its id or start in key list, or, with --project, its name. All processes refuse the
    key within 5 seconds.
    """
    engine = opened(settings)
    now_s = int(time.time())
    revoked = keys.find_valid(engine, key, project_id, now_s)
    keys.revoke(engine, revoked.id, now_s)
    show({"id": revoked.id, "revoked": True}, f"key {revoked.id} of project {revoked.project} revoked")


def _state(key: Key) -> str:
    if key.revoked_s is not None:
        return "revoked"
    return "valid" if key.is_valid(time.time()) else "expired"
