"""The robots.txt texts of the projects, in the control database: at most one for each project."""

from dataclasses import dataclass

import sqlalchemy as sa

from warehouse.control import projects
from warehouse.control.database import METADATA, PROJECTS, transaction

BYTES_MAX = 512 * 1024
"""Maximum size of a text in UTF-8. Crawlers read at least 500 KiB: https://www.rfc-editor.org/rfc/rfc9309#section-2.5"""

ROBOTS_TEXTS = sa.Table(
    "robots_texts",
    METADATA,
    sa.Column("project_id", sa.ForeignKey(PROJECTS.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("saved_s", sa.BigInteger, nullable=False),
)


@dataclass(frozen=True, slots=True)
class RobotsText:
    """The robots.txt of a project, and when it was saved, in seconds since 1970."""

    content: str
    saved_s: int


def save(engine: sa.Engine, project: str, content: str, now_s: int) -> None:
    """Store the text of a project, in place of an earlier one.

    Raises:
        ProjectNotFound
    """
    values = {"content": content, "saved_s": now_s}
    with transaction(engine) as connection:
        projects.lock(connection, project)
        changed = connection.execute(ROBOTS_TEXTS.update().where(ROBOTS_TEXTS.c.project_id == project).values(values))
        if changed.rowcount == 0:
            connection.execute(ROBOTS_TEXTS.insert().values(project_id=project, **values))


def find(engine: sa.Engine, project: str) -> RobotsText | None:
    """Return the text of a project; None if it has none."""
    query = ROBOTS_TEXTS.select().where(ROBOTS_TEXTS.c.project_id == project)
    with engine.connect() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else RobotsText(row.content, row.saved_s)


def remove(engine: sa.Engine, project: str) -> None:
    """Delete the text of a project. A missing text is not an error."""
    with engine.begin() as connection:
        connection.execute(ROBOTS_TEXTS.delete().where(ROBOTS_TEXTS.c.project_id == project))
