"""The command `user`: the users of the dashboard.

A password is never an argument, because other users of the machine can see the arguments of a process.
"""

import sys
import time

import click

from api.accounts import one_time_links, passwords, users
from api.accounts.users import ROLES, Role, User
from api.cli.options.control_database import created, opened
from api.cli.output import ERR, minute, rows_format, show, show_rows, table
from api.server import service_lock
from api.settings import Settings
from warehouse.database.pool import Pool

from_standard_input = click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password from standard input, one line, instead of printing a link.",
)


@click.group()
def user() -> None:
    """Add, list and remove the users of the dashboard."""


@user.command("add")
@click.argument("name")
@click.option(
    "--role", type=click.Choice(ROLES), default="viewer", show_default=True, help="owner: everything. viewer: reads."
)
@from_standard_input
@click.pass_obj
def add_user(settings: Settings, name: str, role: Role, password_stdin: bool) -> None:
    """Add a user, and print a link with which the user sets a password.

    The link works once, within 30 minutes. Standard output gets the link and nothing else. The first user must be an
    owner.
    """
    control = created(settings)
    password = _standard_input() if password_stdin else None
    if role != "owner" and users.count(control) == 0:
        raise click.UsageError("the first user must be an owner: add --role owner")
    added = users.create(control, name, role, passwords.hashed(password), int(time.time()))
    if password is None:
        _print_link(settings, control, added, "added")
    else:
        show(added, f"user {added.name} added as {role}")


@user.command("list")
@rows_format
@click.pass_obj
def list_users(settings: Settings, form: str | None) -> None:
    """List all users."""
    listed = users.list_all(opened(settings))
    rows = (
        (each.name, each.role, minute(each.created_s), minute(each.last_seen_s), "yes" if each.has_password else "no")
        for each in listed
    )
    show_rows(listed, table(("name", "role", "created", "last seen", "password"), rows), form)


@user.command("reset")
@click.argument("name")
@from_standard_input
@click.pass_obj
def reset_user(settings: Settings, name: str, password_stdin: bool) -> None:
    """Delete the password of a user, end the user's sessions, and print a link that sets a new password.

    The link works once, within 30 minutes. Standard output gets the link and nothing else.
    """
    control = opened(settings)
    changed = users.find_by_name(control, name)
    password = _standard_input() if password_stdin else None
    users.set_password(control, changed.id, passwords.hashed(password))
    if password is None:
        _print_link(settings, control, changed, "signed out everywhere")
    else:
        show(users.find_by_name(control, name), f"user {changed.name} signed out everywhere, with the new password")


@user.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
@click.pass_obj
def set_role(settings: Settings, name: str, role: Role) -> None:
    """Change the role of a user. The last owner cannot become a viewer."""
    control = opened(settings)
    users.set_role(control, users.find_by_name(control, name).id, role)
    changed = users.find_by_name(control, name)
    show(changed, f"user {changed.name} is {'an owner' if role == 'owner' else 'a viewer'}")


@user.command("remove")
@click.argument("name")
@click.pass_obj
def remove_user(settings: Settings, name: str) -> None:
    """Remove a user, and end the user's sessions. The last owner cannot be removed."""
    control = opened(settings)
    removed = users.find_by_name(control, name)
    users.remove(control, removed.id)
    show({"id": removed.id, "removed": True}, f"user {removed.name} removed")


def _standard_input() -> str:
    """Read and return the password on the first line of standard input. Raises InvalidPassword."""
    password = sys.stdin.readline().rstrip("\r\n")
    passwords.check(password)
    return password


def _print_link(settings: Settings, control: Pool, user: User, change: str) -> None:
    path = f"/welcome/{one_time_links.create(control, 'password', user.id, int(time.time()))}"
    base_url = settings.base_url or service_lock.read_url(settings.run)
    where = "this link" if base_url else "this path, at the URL of the service,"
    ERR.print(f"user {user.name} {change}; {where} sets the password, once, within 30 minutes:", markup=False)
    click.echo(f"{base_url or ''}{path}")
