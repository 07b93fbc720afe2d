"""Recipes: configurations and programs that send views, filled in with a project and the address of the service."""

from dataclasses import dataclass

from api.dashboard.web import render
from api.dashboard.web.visit import Visit
from api.http.operation import ADDRESS
from api.reference.reference import PLAIN_ADDRESS
from ingest.formats.page_filter import NOT_PAGES

FOLDER = render.TEMPLATES / "recipes"
_EXTENSIONS = "|".join(sorted(NOT_PAGES))


@dataclass(frozen=True, slots=True)
class Recipes:
    """The recipes of a project. `address` is that of the service, without a slash at its end."""

    project: str
    address: str

    def text(self, name: str, **values: str) -> str:
        """Return the recipe in the file `name`. `values` are those that only this recipe has."""
        template = render.environment().get_template(f"recipes/{name}")
        return template.render(project=self.project, address=self.address, extensions=_EXTENSIONS, **values)

    @property
    def script(self) -> str:
        """Return the line of HTML that loads the script."""
        return f'<script defer src="{self.address}/beacon.js" data-project="{self.project}"></script>'


def of(visit: Visit) -> Recipes:
    """Return the recipes of the project of a visit.

    A recipe contains the address without quotes: an unusual `Host` of the request is replaced by that of the reference.
    """
    assert visit.project is not None
    address = visit.public_url
    return Recipes(visit.project.id, address if PLAIN_ADDRESS.fullmatch(address) else ADDRESS)
