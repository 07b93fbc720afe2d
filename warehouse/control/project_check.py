"""Repeated check that a project still exists, for imports."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from warehouse.control import database, projects
from warehouse.database.url import name_of, sqlite_name
from warehouse.errors import ProjectNotFound

Check = Callable[[], str]
"""A function that returns a project's internal id, or raises ProjectNotFound."""


@contextmanager
def opened(database_url: str, project: str) -> Iterator[Check]:
    """Yield a check that a project exists. It has passed once before the block begins.

    It returns the project's internal id, and fails if the project was deleted, even if another one was created under
    the same id.

    Raises:
        ProjectNotFound: the project does not exist; the check raises it too.
        ControlUnreadable, StoreTooNew: see `database.connect`.
    """
    if sqlite_name(database_url) is not None and not Path(name_of(database_url)).exists():  # connecting would create it
        raise ProjectNotFound(project)
    with closing(database.connect(database_url)) as control:
        internal_id = projects.find(control, project).internal_id

        def check() -> str:
            if projects.find(control, project).internal_id != internal_id:
                raise ProjectNotFound(project)
            return internal_id

        yield check
