"""Projects: sites with separate views, each with the origins whose beacons it accepts."""

import re
import uuid
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa

from warehouse.control import audit
from warehouse.control.database import PROJECTS, transaction
from warehouse.errors import InvalidProject, ProjectExists, ProjectGone, ProjectNotFound

ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
ANY_ORIGIN = "*"
PORT_MAX = 65_535
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4}))?/?")

_IN_USE = PROJECTS.c.is_ending.is_(sa.false())
_INTERNAL_ID = sa.select(PROJECTS.c.internal_id).where(PROJECTS.c.id == sa.bindparam("id"))


@dataclass(frozen=True, slots=True)
class Project:
    """A site. `origins` are the origins of its pages, such as `https://example.com`, or `*` for any origin.

    `internal_id` is unique: a project that is created under the id of a deleted one has another `internal_id`.
    """

    id: str
    origins: tuple[str, ...]
    created_s: int
    internal_id: str = field(default="", compare=False)

    def allows(self, origin: str) -> bool:
        return ANY_ORIGIN in self.origins or origin in self.origins

    def allows_host(self, host: str | None) -> bool:
        return ANY_ORIGIN in self.origins or any(urlsplit(origin).hostname == host for origin in self.origins)


def create(engine: sa.Engine, id: str, origins: tuple[str, ...], now_s: int) -> Project:
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
    values = {
        "id": id,
        "origins": list(project.origins),
        "created_s": now_s,
        "internal_id": project.internal_id,
    }
    try:
        with engine.begin() as connection:
            connection.execute(PROJECTS.insert().values(values))
    except sa.exc.IntegrityError:
        raise ProjectExists(_why_taken(engine, id)) from None
    return project


def find(engine: sa.Engine, id: str) -> Project:
    """Return the project with an id.

    Raises:
        ProjectNotFound: no project has the id, or it is being deleted.
    """
    if "\0" in id:  # PostgreSQL refuses the whole query
        raise ProjectNotFound(id)
    with engine.connect() as connection:
        row = connection.execute(PROJECTS.select().where(PROJECTS.c.id == id, _IN_USE)).one_or_none()
    if row is None:
        raise ProjectNotFound(id)
    return _project(row)


def lock(connection: sa.Connection, id: str) -> None:
    """Lock a project, inside the caller's transaction, against other changes of the rows that refer to it.

    Raises:
        ProjectNotFound: see `find`.
    """
    query = sa.select(PROJECTS.c.id).where(PROJECTS.c.id == id, _IN_USE).with_for_update(key_share=True)
    if "\0" in id or connection.execute(query).one_or_none() is None:
        raise ProjectNotFound(id)


def list_all(engine: sa.Engine) -> list[Project]:
    """Return all projects, ordered by id."""
    with engine.connect() as connection:
        rows = connection.execute(PROJECTS.select().where(_IN_USE).order_by(PROJECTS.c.id)).all()
    return [_project(row) for row in rows]


def set_origins(engine: sa.Engine, id: str, origins: tuple[str, ...], by: str | None = None) -> None:
    """Replace the origins whose beacons a project accepts. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound, InvalidProject
    """
    checked = [normalized_origin(origin) for origin in origins]
    with transaction(engine) as connection:
        lock(connection, id)
        connection.execute(PROJECTS.update().where(PROJECTS.c.id == id).values(origins=checked))
        audit.record(connection, by, "set the allowed sites", id, ", ".join(checked) or "none")


def allow_origin(engine: sa.Engine, id: str, origin: str, by: str | None = None) -> None:
    """Add an origin whose beacons a project accepts, unless the project has it. `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound, InvalidProject
    """
    checked = normalized_origin(origin)
    with transaction(engine) as connection:
        lock(connection, id)
        this = PROJECTS.c.id == id
        origins = connection.execute(sa.select(PROJECTS.c.origins).where(this)).scalar_one()
        if checked not in origins:
            connection.execute(PROJECTS.update().where(this).values(origins=[*origins, checked]))
            audit.record(connection, by, "allowed a site", id, checked)


def internal_id_of(engine: sa.Engine, id: str) -> str:
    """Return the internal id of the project with an id, also if the project is being deleted.

    Raises:
        ProjectNotFound: no project has the id.
    """
    with engine.connect() as connection:
        internal_id: str | None = connection.execute(_INTERNAL_ID, {"id": id}).scalar_one_or_none()
    if internal_id is None:
        raise ProjectNotFound(id)
    return internal_id


def begin_deletion(engine: sa.Engine, id: str, internal_id: str | None = None) -> str:
    """Mark a project as being deleted, and return its internal id. Its rows are erased after this call.

    `find` no longer returns the project, and its id cannot be used until `delete`. The call may be repeated. With an
    `internal_id`, another project that has the id meanwhile is not marked.

    Raises:
        ProjectNotFound: no project has the id.
        ProjectGone: the project with `internal_id` was deleted meanwhile.
    """
    marked = PROJECTS.update().where(_is(id, internal_id)).values(is_ending=True).returning(PROJECTS.c.internal_id)
    with engine.begin() as connection:
        marked_id: str | None = connection.execute(marked).scalar_one_or_none()
    if marked_id is None:
        raise ProjectNotFound(id) if internal_id is None else ProjectGone(id)
    return marked_id


def require_same(engine: sa.Engine, id: str, internal_id: str) -> None:
    """Raise ProjectGone unless the project with an id has this internal id.

    Rows of stores other than the control database have no internal id. After this check, none of the rows that the
    caller has read before belongs to a later project of the same id.
    """
    try:
        current = internal_id_of(engine, id)
    except ProjectNotFound:
        raise ProjectGone(id) from None
    if current != internal_id:
        raise ProjectGone(id)


def is_of(column: sa.ColumnElement[str], id: str, internal_id: str | None) -> sa.ColumnElement[bool]:
    """Return the condition that a column has the id of a project, which has this internal id if there is one."""
    return column == id if internal_id is None else column.in_(sa.select(PROJECTS.c.id).where(_is(id, internal_id)))


def delete(engine: sa.Engine, id: str, internal_id: str | None = None) -> None:
    """Delete a project and all rows of the control database that refer to it. A missing project is not an error.

    With an `internal_id`, a project that was created under the same id meanwhile stays: it has another one.

    Running agent jobs must be removed first: see `agent.jobs.store.remove`.
    """
    with engine.begin() as connection:
        connection.execute(PROJECTS.delete().where(_is(id, internal_id)))


def _is(id: str, internal_id: str | None) -> sa.ColumnElement[bool]:
    """Return the condition that a project has an id, and this internal id if there is one."""
    has_id = PROJECTS.c.id == id
    return has_id if internal_id is None else has_id & (PROJECTS.c.internal_id == internal_id)


def _project(row: sa.Row[Any]) -> Project:
    return Project(row.id, tuple(row.origins), row.created_s, row.internal_id)


def _why_taken(engine: sa.Engine, id: str) -> str:
    with engine.connect() as connection:
        ending = connection.execute(sa.select(PROJECTS.c.is_ending).where(PROJECTS.c.id == id)).scalar_one_or_none()
    if ending:
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
    """Return the origin of the page at an address, which people type: `https` is the default scheme.

    Raises:
        InvalidProject: the address has no origin.
    """
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError:  # such as an invalid IPv6 address
        return normalized_origin(address)
    return normalized_origin(f"{parts.scheme}://{parts.netloc}")
