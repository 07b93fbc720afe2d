"""Projects: sites with separate views, each with the origins whose beacons it accepts."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from warehouse.control import audit, database
from warehouse.control.database import STATEMENTS
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection
from warehouse.database.url import name_of, sqlite_name
from warehouse.errors import InvalidProject, ProjectExists, ProjectGone, ProjectNotFound

ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
ANY_ORIGIN = "*"
PORT_MAX = 65_535
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4}))?/?")


@dataclass(frozen=True, slots=True)
class Project:
    """A site. `origins` are the origins of its pages, such as `https://example.com`, or `*` for any origin.

    `internal_id` is unique: a project that is created under the id of a deleted one has another `internal_id`.
    """

    id: str
    origins: tuple[str, ...]
    created_s: int
    internal_id: str = field(default="", compare=False)

    @property
    def hosts(self) -> frozenset[str]:
        """Return the hosts of the site's pages; none for any origin."""
        return _hosts(self.origins)

    def allows(self, origin: str) -> bool:
        return ANY_ORIGIN in self.origins or origin in self.origins

    def allows_host(self, host: str | None) -> bool:
        return ANY_ORIGIN in self.origins or host in self.hosts


@lru_cache(1_000)  # each post asks for them
def _hosts(origins: tuple[str, ...]) -> frozenset[str]:
    return frozenset(host for origin in origins if (host := urlsplit(origin).hostname))


def create(control: Pool, id: str, origins: tuple[str, ...], now_s: int) -> Project:
    """Create a project.

    Raises:
        InvalidProject: the id or an origin is malformed.
        ProjectExists: a project has the id, or the deletion of one with the id is not complete.
    """
    if ID.fullmatch(id) is None:
        raise InvalidProject(
            f"a project's id is 1 to 63 lower-case letters, digits and hyphens, not starting with a hyphen; not {id!r}"
        )
    project = Project(id, tuple(normalized_origin(origin) for origin in origins), now_s, uuid.uuid4().hex)
    values = {"id": id, "origins": json.dumps(project.origins), "created_s": now_s, "internal_id": project.internal_id}
    with control.transaction() as connection:
        if STATEMENTS.run(connection, "ADD_PROJECT", values).rowcount == 0:
            raise ProjectExists(_why_taken(connection, id))
    return project


def find(control: Pool, id: str) -> Project:
    """Return the project with an id. Raises ProjectNotFound if no project has the id, or it is being deleted."""
    if "\0" in id:  # PostgreSQL refuses the whole query
        raise ProjectNotFound(id)
    with control.connect() as connection:
        row = STATEMENTS.run(connection, "PROJECT", {"id": id}).fetchone()
    if row is None:
        raise ProjectNotFound(id)
    return _project(*row)


def lock(connection: Connection, id: str) -> tuple[str, ...]:
    """Lock a project, inside the caller's transaction, against other changes of the rows that refer to it.

    Return its origins.

    Raises:
        ProjectNotFound: see `find`.
    """
    row = None if "\0" in id else STATEMENTS.run(connection, "LOCK_PROJECT", {"id": id}).fetchone()
    if row is None:
        raise ProjectNotFound(id)
    return tuple(json.loads(row[0]))


def list_all(control: Pool) -> list[Project]:
    """Return all projects, ordered by id."""
    with control.connect() as connection:
        return [_project(*row) for row in STATEMENTS.run(connection, "PROJECTS").fetchall()]


def set_origins(control: Pool, id: str, origins: tuple[str, ...], by: str | None = None) -> None:
    """Replace the origins whose beacons a project accepts. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound, InvalidProject
    """
    checked = [normalized_origin(origin) for origin in origins]
    with control.transaction() as connection:
        lock(connection, id)
        STATEMENTS.run(connection, "SET_ORIGINS", {"id": id, "origins": json.dumps(checked)})
        audit.record(connection, by, "set the allowed sites", id, ", ".join(checked) or "none")


def allow_origin(control: Pool, id: str, origin: str, by: str | None = None) -> None:
    """Add an origin whose beacons a project accepts, unless the project has it. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound, InvalidProject
    """
    checked = normalized_origin(origin)
    with control.transaction() as connection:
        origins = lock(connection, id)
        if checked not in origins:
            STATEMENTS.run(connection, "SET_ORIGINS", {"id": id, "origins": json.dumps([*origins, checked])})
            audit.record(connection, by, "allowed a site", id, checked)


def internal_id_of(control: Pool, id: str) -> str:
    """Return the internal id of a project, also if it is being deleted. Raises ProjectNotFound."""
    with control.connect() as connection:
        row = STATEMENTS.run(connection, "INTERNAL_ID", {"id": id}).fetchone()
    if row is None:
        raise ProjectNotFound(id)
    return str(row[0])


def begin_deletion(control: Pool, id: str, internal_id: str | None = None) -> str:
    """Mark a project as being deleted, and return its internal id. Its rows are erased after this call.

    `find` no longer returns the project, and its id cannot be used until `delete`. The call may be repeated. With an
    `internal_id`, another project that has the id meanwhile is not marked.

    Raises:
        ProjectNotFound: no project has the id.
        ProjectGone: the project with `internal_id` was deleted meanwhile.
    """
    with control.transaction() as connection:
        marked = STATEMENTS.run(connection, "BEGIN_DELETION", {"id": id, "internal_id": internal_id}).fetchall()
    if not marked:
        raise ProjectNotFound(id) if internal_id is None else ProjectGone(id)
    return str(marked[0][0])


def require_same(control: Pool, id: str, internal_id: str) -> None:
    """Raise ProjectGone unless the project with an id has this internal id.

    Rows of stores other than the control database have no internal id. After this check, none of the rows that the
    caller has read before belongs to a later project of the same id.
    """
    try:
        current = internal_id_of(control, id)
    except ProjectNotFound:
        raise ProjectGone(id) from None
    if current != internal_id:
        raise ProjectGone(id)


def delete(control: Pool, id: str, internal_id: str | None = None) -> None:
    """Delete a project and all rows of the control database that refer to it. A missing project is not an error.

    With an `internal_id`, a project that was created under the same id meanwhile stays: it has another one.

    Running agent jobs must be removed first: see `agent.jobs.store.remove`.
    """
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE_PROJECT", {"id": id, "internal_id": internal_id})


def _project(id: str, origins: str, created_s: int, internal_id: str) -> Project:
    return Project(id, tuple(json.loads(origins)), created_s, internal_id)


def _why_taken(connection: Connection, id: str) -> str:
    row = STATEMENTS.run(connection, "IS_ENDING", {"id": id}).fetchone()
    if row is not None and row[0]:
        return f"the deletion of project {id!r} is not complete: delete it again if it was interrupted"
    return f"project {id!r} exists already"


def normalized_origin(text: str) -> str:
    """Return an origin in the form that browsers send: lower case, without a path or the scheme's default port.

    Raises:
        InvalidProject: the text is not an origin.
    """
    if text == ANY_ORIGIN:
        return text
    parts = _ORIGIN.fullmatch(text.lower())
    if parts is None or int(parts["port"] or 0) > PORT_MAX:
        raise InvalidProject(
            "an origin is like https://example.com, http://localhost:3000 or https://xn--bcher-kva.example, or *; "
            f"not {text!r}"
        )
    default = {"http": "80", "https": "443"}[parts["scheme"]]
    return f"{parts['scheme']}://{parts['host']}" + (
        f":{parts['port']}" if parts["port"] not in (None, default) else ""
    )


def origin_of(address: str) -> str:
    """Return the origin of an address that people type: `https` is the default scheme. Raises InvalidProject."""
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError:  # such as an invalid IPv6 address
        return normalized_origin(address)
    return normalized_origin(f"{parts.scheme}://{parts.netloc}")


Check = Callable[[], str]
"""A function that returns a project's internal id, or raises ProjectNotFound."""


@contextmanager
def repeated_check(database_url: str, project: str) -> Iterator[Check]:
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
        internal_id = find(control, project).internal_id

        def check() -> str:
            if find(control, project).internal_id != internal_id:
                raise ProjectNotFound(project)
            return internal_id

        yield check
