"""Whether a project stands, asked often by one that stores much for it."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from warehouse.control import schema_steps
from warehouse.database_errors import is_damage
from warehouse.errors import ControlUnreadable, ProjectNotFound
from warehouse.folder import sqlite_url
from warehouse.transaction import BUSY_TIMEOUT_S

Check = Callable[[], str]
"""A function that returns a project's internal id, or raises ProjectNotFound."""
_HAS_VERSION = "SELECT 1 FROM sqlite_master WHERE name = 'schema_version'"
_IS_MADE = "SELECT 1 FROM sqlite_master WHERE name = 'projects'"
_STANDS = "SELECT internal_id FROM projects WHERE id = ? AND NOT is_ending"


@contextmanager
def sqlite_check(file: Path, project: str) -> Iterator[Check]:
    """Yield a check that a project is in use in a control database that is a SQLite file, after checking it once.

    The check returns the project's internal id. It fails for a project that was created later under the same id.

    SQLAlchemy takes as long to load as an import takes for 100,000 lines. It is only loaded to bring an older database
    up to date.

    Raises, as the check does:
        ProjectNotFound: it does not, or there is no database yet.
        ControlUnreadable: what is there is no database, or cannot be opened.
        StoreTooNew: a newer release wrote it.
    """
    if not file.exists():
        raise ProjectNotFound(project)
    url = f"{file.as_uri()}?mode=rw"  # never makes it
    with _told(file):
        connection = sqlite3.connect(url, timeout=BUSY_TIMEOUT_S, uri=True)
    with closing(connection):

        def find() -> str:
            with _told(file):
                is_made = connection.execute(_IS_MADE).fetchone() is not None
                row = connection.execute(_STANDS, (project,)).fetchone() if is_made else None
            if row is None:
                raise ProjectNotFound(project)
            return str(row[0])

        with _told(file):
            is_older = _is_older(connection)
        if is_older:
            _upgrade(file)
        yield _same(find, project)


def _same(find: Check, project: str) -> Check:
    """Return a check that raises ProjectNotFound once `find` returns another internal id than now."""
    internal_id = find()

    def check() -> str:
        if find() != internal_id:
            raise ProjectNotFound(project)
        return internal_id

    return check


def _is_older(connection: sqlite3.Connection) -> bool:
    """Return whether the tables lack a step. Raises StoreTooNew."""
    has_version = connection.execute(_HAS_VERSION).fetchone() is not None
    version = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0] if has_version else None
    is_made = connection.execute(_IS_MADE).fetchone() is not None
    return is_made and len(schema_steps.pending(version)) > 0


def _upgrade(file: Path) -> None:
    from warehouse.control import database  # noqa: PLC0415  # SQLAlchemy: see `sqlite_check`

    database.connect(sqlite_url(file)).dispose()


@contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        advice = f": {schema_steps.RESTORE}" if is_damage(error) else ""
        raise ControlUnreadable(f"{file} cannot be read ({error}){advice}") from None


@contextmanager
def engine_check(database_url: str, project: str) -> Iterator[Check]:
    """Yield the check of `sqlite_check` for any control database."""
    from warehouse.control import database, projects  # noqa: PLC0415  # SQLAlchemy: see `sqlite_check`

    engine = database.connect(database_url)

    try:
        yield _same(lambda: projects.find(engine, project).internal_id, project)
    finally:
        engine.dispose()
