"""Read-only links to a project's pages, which an owner can revoke. The database has only the SHA-256 of a token."""

import secrets
from dataclasses import asdict, dataclass
from typing import Literal

from api.accounts import tokens
from api.errors import ShareLinkNotFound
from warehouse.control import audit, projects
from warehouse.control.database import statements
from warehouse.database.pool import Pool

STATEMENTS = statements(__file__)
Pages = Literal["overview", "all"]


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A share link without its token. Times are in seconds since 1970. `pages` are those that the link opens."""

    id: str
    project: str
    name: str
    created_s: int
    revoked_s: int | None
    pages: Pages = "overview"


def create(
    control: Pool, project: str, name: str, now_s: int, by: str | None = None, pages: Pages = "overview"
) -> tuple[ShareLink, str]:
    """Create a share link and return it with its token, which is not stored. The name has at most 100 characters.

    `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound
    """
    projects.find(control, project)
    token = tokens.new()
    link = ShareLink(secrets.token_hex(6), project, name, now_s, None, pages)
    values = asdict(link) | {"sha256": tokens.sha256(token)}
    with control.transaction() as connection:
        STATEMENTS.run(connection, "ADD", values)
        audit.record(connection, by, "created a share link", project, name)
    return link, token


def list_all(control: Pool, project: str) -> list[ShareLink]:
    """Return the share links of a project, also the revoked ones, oldest first."""
    with control.connect() as connection:
        return [ShareLink(*row) for row in STATEMENTS.run(connection, "OF_PROJECT", {"project": project}).fetchall()]


def find(control: Pool, token: str) -> ShareLink | None:
    """Return the share link of a token; None if the link is unknown or revoked, or its project is being deleted."""
    with control.connect() as connection:
        row = STATEMENTS.run(connection, "BY_TOKEN", {"sha256": tokens.sha256(token)}).fetchone()
    return None if row is None else ShareLink(*row)


def revoke(control: Pool, id: str, now_s: int, by: str | None = None) -> None:
    """Revoke a share link, once: its next request is refused. Raises ShareLinkNotFound."""
    with control.transaction() as connection:
        row = STATEMENTS.run(connection, "LOCK", {"id": id}).fetchone()
        if row is None:
            raise ShareLinkNotFound(f"there is no share link with the id {id!r}")
        link = ShareLink(*row)
        if link.revoked_s is None:
            STATEMENTS.run(connection, "REVOKE", {"id": id, "now_s": now_s})
            audit.record(connection, by, "revoked a share link", link.project, link.name)
