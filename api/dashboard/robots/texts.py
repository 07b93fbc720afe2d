"""The robots.txt texts of the projects with the times from which they were in force, in the control database."""

from dataclasses import dataclass
from datetime import UTC, datetime

from warehouse.control import projects
from warehouse.control.database import statements
from warehouse.database.pool import Pool
from warehouse.database.statements import Connection

BYTES_MAX = 512 * 1024
"""Maximum size of a text in UTF-8. Crawlers read at least 500 KiB: https://www.rfc-editor.org/rfc/rfc9309#section-2.5"""
VERSIONS_MAX = 20
"""Maximum number of texts of a project."""

STATEMENTS = statements(__file__)


@dataclass(frozen=True, slots=True)
class RobotsText:
    """A robots.txt of a project, in force from `since_s`, in seconds since 1970, until the next one."""

    content: str
    since_s: int

    @property
    def since(self) -> datetime:
        return datetime.fromtimestamp(self.since_s, UTC)


def save(control: Pool, project: str, content: str, since_s: int) -> bool:
    """Store a text of a project, unless the same one is in force, and return False if it has VERSIONS_MAX texts.

    A text that is in force from the same second is replaced.

    Raises:
        ProjectNotFound
    """
    with control.transaction() as connection:
        projects.lock(connection, project)
        stored = _versions(connection, project)
        if [text.content for text in stored if text.since_s <= since_s][-1:] == [content]:
            return True
        if len(stored) >= VERSIONS_MAX and since_s not in {text.since_s for text in stored}:
            return False
        STATEMENTS.run(connection, "SAVE", {"project": project, "content": content, "since_s": since_s})
        return True


def versions(control: Pool, project: str) -> list[RobotsText]:
    """Return the texts of a project, the oldest first. The last one is in force."""
    with control.connect() as connection:
        return _versions(connection, project)


def changes(control: Pool, project: str) -> list[datetime]:
    """Return the times from which texts of a project differ from the text before them."""
    with control.connect() as connection:
        rows = STATEMENTS.run(connection, "CHANGES", {"project": project}).fetchall()
    return [datetime.fromtimestamp(since_s, UTC) for (since_s,) in rows]


def _versions(connection: Connection, project: str) -> list[RobotsText]:
    return [RobotsText(*row) for row in STATEMENTS.run(connection, "VERSIONS", {"project": project}).fetchall()]


def remove(control: Pool, project: str, since_s: int) -> None:
    """Delete the text that is in force from `since_s`. A missing text is not an error."""
    with control.transaction() as connection:
        STATEMENTS.run(connection, "DELETE", {"project": project, "since_s": since_s})
