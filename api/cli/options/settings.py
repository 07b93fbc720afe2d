"""The command `settings`: the settings, their values and their meaning."""

import re

import click

from api.cli.output import rows_format, show_rows, table
from api.settings import SETTINGS, Settings, variable
from warehouse.database.url import name_of

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)|`")


@click.command("settings")
@rows_format
@click.pass_obj
def settings_(settings: Settings, form: str | None) -> None:
    """Print the settings with the values that they have now, without passwords."""
    rows = [
        {"setting": variable(name), "value": _text(settings, name), "meaning": _LINK.sub(r"\1", each.meaning)}
        for name, each in SETTINGS.items()
    ]
    show_rows(rows, table(("setting", "value", "meaning"), [tuple(row.values()) for row in rows]), form)


def _text(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    if name == "database_url":
        return name_of(value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, tuple) else str(value)
