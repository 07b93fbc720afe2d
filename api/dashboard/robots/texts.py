"""The robots.txt texts of the projects, in the control database: at most one for each project."""

from dataclasses import dataclass

from warehouse.control import projects
from warehouse.control.database import statements
from warehouse.database.pool import Pool

BYTES_MAX = 512 * 1024
"""Maximum size of a text in UTF-8. Crawlers read at least 500 KiB: https://www.rfc-editor.org/rfc/rfc9309#section-2.5"""

STATEMENTS = statements(__file__)


@dataclass(frozen=True, slots=True)
class RobotsText:
    """The robots.txt of a project, and when it was saved, in seconds since 1970."""

    content: str
    saved_s: int


def save(control: Pool, project: str, content: str, now_s: int) -> None:
    """Store the text of a project, in place of an earlier one.

    Raises:
        ProjectNotFound
    """
    with control.transaction() as connection:
        projects.lock(connection, project)
        STATEMENTS.run(connection, "SAVE", {"project": project, "content": content, "saved_s": now_s})


def find(control: Pool, project: str) -> RobotsText | None:
    """Return the text of a project; None if it has none."""
    with control.connect() as connection:
        row = STATEMENTS.run(connection, "TEXT", {"project": project}).fetchone()
    return None if row is None else RobotsText(*row)


def remove(control: Pool, project: str) -> None:
    """Delete the text of a project. A missing text is not an error."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE", {"project": project})
