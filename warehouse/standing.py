"""Whether a project stands, asked often by one that stores much for it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from warehouse import control_steps
from warehouse.batches import BUSY_TIMEOUT_S
from warehouse.errors import ControlUnreadable, ProjectNotFound

_HAS_VERSION = "SELECT 1 FROM sqlite_master WHERE name = 'schema_version'"
_IS_MADE = "SELECT 1 FROM sqlite_master WHERE name = 'projects'"
_STANDS = "SELECT 1 FROM projects WHERE id = ? AND NOT is_ending"


@contextmanager
def in_file(control: Path, project: str) -> Iterator[Callable[[], None]]:
    """A check that a project stands in a control database that is a SQLite file; it is done once before this yields.

    Not by SQLAlchemy, which takes as long to load as an import takes for 100,000 lines.

    Raises, as the check does:
        ProjectNotFound: it does not, or there is no database yet.
        ControlUnreadable: what is there is no database, or cannot be opened.
        StoreTooNew: a newer release wrote it.
    """
    if not control.exists():
        raise ProjectNotFound(project)
    url = f"{control.as_uri()}?mode=rw"  # never makes it
    with _told():
        connection = sqlite3.connect(url, timeout=BUSY_TIMEOUT_S, uri=True)
    with closing(connection):

        def check() -> None:
            with _told():
                is_made = connection.execute(_IS_MADE).fetchone() is not None
                if not is_made or connection.execute(_STANDS, (project,)).fetchone() is None:
                    raise ProjectNotFound(project)

        with _told():
            _refuse_newer(connection)
        check()
        yield check


def _refuse_newer(connection: sqlite3.Connection) -> None:
    if connection.execute(_HAS_VERSION).fetchone() is not None:
        control_steps.pending(*connection.execute("SELECT max(version) FROM schema_version").fetchone())


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise ControlUnreadable(f"the control database: {error}") from None


@contextmanager
def anywhere(database_url: str, project: str) -> Iterator[Callable[[], None]]:
    """The same of any control database."""
    from warehouse import control, projects  # noqa: PLC0415  # SQLAlchemy: see `in_file`

    engine = control.connect(database_url)

    def check() -> None:
        projects.find(engine, project)

    try:
        check()
        yield check
    finally:
        engine.dispose()
