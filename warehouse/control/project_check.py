"""Repeated check that a project still exists, and the secret of the store, both without SQLAlchemy, for imports."""

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
_HAS_VERSION_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'schema_version'"
_HAS_PROJECTS_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'projects'"
_HAS_SECRETS_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'store_secrets'"
_STORED = "SELECT secret FROM store_secrets"
_INTERNAL_ID = "SELECT internal_id FROM projects WHERE id = ? AND NOT is_ending"


@contextmanager
def sqlite_check(file: Path, project: str) -> Iterator[Check]:
    """Yield a check that a project exists, for a control database that is a SQLite file.

    The check has passed once before the block begins. It returns the project's internal id, and fails if the project
    was deleted, even if another one was created under the same id.

    SQLAlchemy, which takes 0.2 s to import, is imported only to upgrade an older file.

    Raises:
        ProjectNotFound: the project or the whole file does not exist; the check raises it too.
        ControlUnreadable: the file is not a database, or cannot be opened; the check raises it too.
        StoreTooNew: a newer release wrote the file.
    """
    if not file.exists():
        raise ProjectNotFound(project)
    url = f"{file.as_uri()}?mode=rw"  # does not create the file
    with _unreadable(file):
        connection = sqlite3.connect(url, timeout=BUSY_TIMEOUT_S, uri=True)
    with closing(connection):

        def find() -> str:
            with _unreadable(file):
                has_projects = connection.execute(_HAS_PROJECTS_TABLE).fetchone() is not None
                row = connection.execute(_INTERNAL_ID, (project,)).fetchone() if has_projects else None
            if row is None:
                raise ProjectNotFound(project)
            return str(row[0])

        with _unreadable(file):
            is_older = _is_older(connection)
        if is_older:
            _upgrade(file)
        yield _unchanged(find, project)


def _unchanged(find: Check, project: str) -> Check:
    """Return a check that raises ProjectNotFound if `find` returns another internal id than it does now."""
    internal_id = find()

    def check() -> str:
        if find() != internal_id:
            raise ProjectNotFound(project)
        return internal_id

    return check


def _is_older(connection: sqlite3.Connection) -> bool:
    """Return whether the tables have an older schema version than this release. Raises StoreTooNew."""
    has_version = connection.execute(_HAS_VERSION_TABLE).fetchone() is not None
    version = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0] if has_version else None
    has_projects = connection.execute(_HAS_PROJECTS_TABLE).fetchone() is not None
    return has_projects and len(schema_steps.pending(version)) > 0


def _upgrade(file: Path) -> None:
    from warehouse.control import database  # noqa: PLC0415  # SQLAlchemy: see `sqlite_check`

    database.connect(sqlite_url(file)).dispose()


@contextmanager
def _unreadable(file: Path) -> Iterator[None]:
    """Raise ControlUnreadable, with the file's name, for an error of SQLite in the block."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        advice = f": {schema_steps.RESTORE}" if is_damage(error) else ""
        raise ControlUnreadable(f"{file} cannot be read ({error}){advice}") from None


def stored_secret(file: Path) -> bytes | None:
    """Return the secret in a control database that is a SQLite file; None if it has none yet: see `store_secret`.

    Raises:
        ControlUnreadable: see `sqlite_check`.
    """
    if not file.exists():
        return None
    with _unreadable(file), closing(sqlite3.connect(file, timeout=BUSY_TIMEOUT_S)) as connection:
        row = connection.execute(_STORED).fetchone() if connection.execute(_HAS_SECRETS_TABLE).fetchone() else None
    return None if row is None else bytes(row[0])


@contextmanager
def engine_check(database_url: str, project: str) -> Iterator[Check]:
    """Yield the check of `sqlite_check`, for a control database of any kind."""
    from warehouse.control import database, projects  # noqa: PLC0415  # SQLAlchemy: see `sqlite_check`

    engine = database.connect(database_url)

    try:
        yield _unchanged(lambda: projects.find(engine, project).internal_id, project)
    finally:
        engine.dispose()
