"""Recipes: configurations and programs that send views, filled in with a project and the address of the service."""

from dataclasses import dataclass
from pathlib import Path

from api.dashboard.web import render
from api.dashboard.web.visit import ProjectVisit
from api.http.operation import ADDRESS
from api.reference.reference import PLAIN_ADDRESS
from warehouse.columns.kinds import NOT_PAGES

FOLDER = render.TEMPLATES / "recipes"
_EXTENSIONS = "|".join(sorted(NOT_PAGES))


@dataclass(frozen=True, slots=True)
class Recipes:
    """The recipes of a project.

    `address` is the URL of the service without a slash at its end, `command` the start of its command line, and `user`
    the account to which its data folder belongs.
    """

    project: str
    address: str
    command: str
    user: str

    def text(self, name: str, **values: str) -> str:
        """Return the recipe in the file `name`. `values` are those that only this recipe has."""
        template = render.environment().get_template(f"recipes/{name}")
        values |= {"project": self.project, "address": self.address, "command": self.command, "user": self.user}
        return template.render(extensions=_EXTENSIONS, **values)

    @property
    def script(self) -> str:
        """Return the line of HTML that loads the script."""
        return f'<script defer src="{self.address}/beacon.js" data-project="{self.project}"></script>'


def of(visit: ProjectVisit) -> Recipes:
    """Return the recipes of the project of a visit.

    A recipe contains the address without quotes: an unusual `Host` of the request is replaced by that of the reference.
    """
    address, settings = visit.public_url, visit.state.settings
    plain = address if PLAIN_ADDRESS.fullmatch(address) else ADDRESS
    return Recipes(visit.project.id, plain, settings.command, _owner(settings.data))


def _owner(folder: Path) -> str:
    """Return the name of the account to which a folder belongs, or its number if it has no name."""
    try:
        return folder.owner()
    except KeyError:
        return str(folder.stat().st_uid)
