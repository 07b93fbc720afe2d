"""Read-only links to a project's overview, which an owner can revoke. The database has only the SHA-256 of a token."""

import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from api.dashboard.accounts import tokens
from api.errors import ShareLinkNotFound
from warehouse.control import audit, projects
from warehouse.control.database import METADATA, PROJECTS, transaction

NAME_CHARACTERS_MAX = 100

SHARE_LINKS = sa.Table(
    "share_links",
    METADATA,
    sa.Column("id", sa.String(12), primary_key=True),
    sa.Column("project_id", sa.ForeignKey(PROJECTS.c.id, ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("name", sa.String(NAME_CHARACTERS_MAX), nullable=False),
    sa.Column("sha256", sa.String(tokens.HASH_CHARACTERS), nullable=False, unique=True),
    sa.Column("created_s", sa.BigInteger, nullable=False),
    sa.Column("revoked_s", sa.BigInteger),
)


@dataclass(frozen=True, slots=True)
class ShareLink:
    """A share link without its token. Times are in seconds since 1970."""

    id: str
    project: str
    name: str
    created_s: int
    revoked_s: int | None


def create(engine: sa.Engine, project: str, name: str, now_s: int, by: str | None = None) -> tuple[ShareLink, str]:
    """Create a share link and return it with its token, which is not stored. The name has at most 100 characters.

    `by`: see `who` of `audit.Entry`.

    Raises:
        ProjectNotFound
    """
    projects.find(engine, project)
    token = tokens.new()
    link = ShareLink(secrets.token_hex(6), project, name, now_s, None)
    values = {
        "id": link.id,
        "project_id": project,
        "name": name,
        "sha256": tokens.sha256(token),
        "created_s": now_s,
    }
    with engine.begin() as connection:
        connection.execute(SHARE_LINKS.insert().values(values))
        audit.record(connection, by, "created a share link", project, name)
    return link, token


def list_all(engine: sa.Engine, project: str) -> list[ShareLink]:
    """Return the share links of a project, also the revoked ones, oldest first."""
    query = SHARE_LINKS.select().where(SHARE_LINKS.c.project_id == project)
    with engine.connect() as connection:
        rows = connection.execute(query.order_by(SHARE_LINKS.c.created_s, SHARE_LINKS.c.id)).all()
    return [_link(row) for row in rows]


def find(engine: sa.Engine, token: str) -> ShareLink | None:
    """Return the share link of a token; None if the link is unknown or revoked, or its project is being deleted."""
    query = (
        SHARE_LINKS.select().join(PROJECTS).where(SHARE_LINKS.c.revoked_s.is_(None), PROJECTS.c.is_ending.is_(False))
    )
    with engine.connect() as connection:
        row = connection.execute(query.where(SHARE_LINKS.c.sha256 == tokens.sha256(token))).one_or_none()
    return None if row is None else _link(row)


def revoke(engine: sa.Engine, id: str, now_s: int, by: str | None = None) -> None:
    """Revoke a share link: its next request is refused. A second revocation does not change the time of the first.

    Raises:
        ShareLinkNotFound
    """
    of_link = SHARE_LINKS.c.id == id
    with transaction(engine) as connection:
        row = connection.execute(SHARE_LINKS.select().where(of_link).with_for_update()).one_or_none()
        if row is None:
            raise ShareLinkNotFound(f"there is no share link with the id {id!r}")
        if row.revoked_s is None:
            connection.execute(SHARE_LINKS.update().where(of_link).values(revoked_s=now_s))
            audit.record(connection, by, "revoked a share link", row.project_id, row.name)


def _link(row: sa.Row[Any]) -> ShareLink:
    return ShareLink(row.id, row.project_id, row.name, row.created_s, row.revoked_s)
