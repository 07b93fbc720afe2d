"""Cross-origin resource sharing (CORS): the origins whose pages may send beacons, and the headers that pages may read.

https://fetch.spec.whatwg.org/#http-cors-protocol

A page of another site must not count its visitors as visitors of a project. Browsers send an `Origin` with a beacon,
and none with an image: see `require_own_page`.
"""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request

from api.http.headers import header
from api.http.problems import Problem
from ingest.hits.url import host
from warehouse.control.projects import ANY_ORIGIN, Project, normalized_origin, origin_of
from warehouse.database.pool import open_file
from warehouse.errors import InvalidProject

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "Content-Type",
    "Access-Control-Max-Age": "86400",
}
ORIGIN_CHARACTERS_MAX = 300
"""Maximum length of an origin in messages. The longest host name has 253 characters."""
AS_OF = "X-As-Of"
"""Name of the header with the moment of a report."""
EXPOSED = {"Access-Control-Expose-Headers": AS_OF}
"""Header of a report that lets a page's script read its moment, where a proxy allows the page's origin.

The service itself allows no origin to read reports, because an API key must not be in a page.
"""
HEADERS = ("Access-Control-Allow-Origin", *_PREFLIGHT)
"""Names of the headers of a response to a preflight request."""

REFUSED_MAX = 20
"""Maximum number of refused origins of a project that are shown."""
_CREATE = """
CREATE TABLE IF NOT EXISTS refused (
    project TEXT, origin TEXT, beacons INTEGER, last_s INTEGER, PRIMARY KEY (project, origin)
)
"""
_ADD = """
INSERT INTO refused VALUES (:project, :origin, 1, :now_s)
ON CONFLICT DO UPDATE SET beacons = beacons + 1, last_s = excluded.last_s
"""
_REMOVE = f"""
DELETE FROM refused WHERE project = :project AND origin IN (
    SELECT origin FROM refused WHERE project = :project AND origin <> :origin ORDER BY beacons DESC, last_s DESC
    LIMIT -1 OFFSET {REFUSED_MAX - 1}
)
"""


@dataclass
class OriginRefused(Problem):
    """The problem `origin-not-allowed`. `origin` is the page's origin; None if the page withholds it."""

    origin: str | None = None


class RefusedOrigin(NamedTuple):
    """An origin whose beacons were refused since the start of the service, and the time of the last one."""

    origin: str
    beacons: int
    last_s: int

    @property
    def last(self) -> datetime:
        return datetime.fromtimestamp(self.last_s, UTC)


class RefusedOrigins:
    """Counts of refused beacons by project and origin, over all server processes, in the file of the rate limits.

    A project has the REFUSED_MAX origins with the most beacons: strangers can send any number of origins.
    """

    def __init__(self, path: Path) -> None:
        self._connection = open_file(path, 0, "synchronous=OFF")
        self._connection.execute(_CREATE)

    def add(self, project: str, origin: str, now_s: int) -> None:
        """Count a refused beacon, unless its origin is malformed or another process counts at this moment."""
        values = {"project": project, "origin": origin, "now_s": now_s}
        with suppress(InvalidProject, sqlite3.OperationalError):
            if len(origin) <= ORIGIN_CHARACTERS_MAX and normalized_origin(origin) == origin != ANY_ORIGIN:
                self._connection.execute(_ADD, values)
                self._connection.execute(_REMOVE, values)

    def of(self, project: Project) -> list[RefusedOrigin]:
        """Return the refused origins that the project does not allow now, most beacons first."""
        query = "SELECT origin, beacons, last_s FROM refused WHERE project = ? ORDER BY beacons DESC, origin"
        counted = (RefusedOrigin(*row) for row in self._connection.execute(query, (project.id,)))
        return [each for each in counted if not project.allows(each.origin)]

    def close(self) -> None:
        self._connection.close()


def readable(request: Request) -> dict[str, str]:
    """Return the headers that let a page of any origin read the response: beacon.js logs why a beacon failed."""
    origin = header(request, b"origin")
    return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"} if origin else {}


def allowed(request: Request, project: Project) -> dict[str, str]:
    """Return the headers that let a page of one of the project's origins read the response.

    Raises:
        Problem: `origin-not-allowed`, for another origin. A request without an Origin header is allowed.
    """
    origin = header(request, b"origin")
    if origin is not None and not project.allows(origin):
        raise _refused(project, origin)
    return {} if origin is None else {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def require_own_page(request: Request, project: Project) -> None:
    """Raise Problem `origin-not-allowed` for an image on a page of a site that is not one of the project's.

    A project without origins, and an image with an Origin, are not checked here. Without a Referer, which a page or a
    browser may withhold, the image may be on a page of the same site, or in a program that sends no `Sec-Fetch-Site`
    either: browsers send it since 2023 to services with HTTPS.
    """
    if not project.origins or header(request, b"origin") is not None:
        return
    referer = header(request, b"referer")
    if referer is None:
        if header(request, b"sec-fetch-site") == "cross-site" and ANY_ORIGIN not in project.origins:
            raise _refused(project, None)
    elif not project.allows(origin := _origin(referer)):
        raise _refused(project, origin)


def require_own_url(project: Project, url: str | None) -> None:
    """Raise Problem `origin-not-allowed` for a page of a host that is not one of the project's, if it has any."""
    if url and project.origins and not project.allows_host(host(url)):
        raise _refused(project, _origin(url))


def _refused(project: Project, origin: str | None) -> OriginRefused:
    """Return the problem, which names the command that allows an origin: None if the page withholds it.

    The command has none of the project's origins, because strangers read the message.
    """
    withheld = "a page of another site that withholds its address (Referer)"
    sender = withheld if origin is None else f"the origin {origin!r}"
    detail = (
        f"project {project.id!r} does not accept beacons from {sender}; to accept them, list its origin with all others"
        f" of your site: readership project origins {project.id} ORIGIN..."
    )
    return OriginRefused("origin-not-allowed", detail, headers={"Vary": "Origin"}, origin=origin)


def _origin(url: str) -> str:
    """Return the origin of a URL as browsers send it, or a text that has none; of a long one, its beginning."""
    try:
        return origin_of(url)[:ORIGIN_CHARACTERS_MAX]
    except InvalidProject:
        return url[:ORIGIN_CHARACTERS_MAX]


def preflight(request: Request, project: Project) -> dict[str, str]:
    """Return the headers that let a page of one of the project's origins post JSON. Raises Problem: as `allowed`."""
    headers = allowed(request, project)
    return {**headers, **_PREFLIGHT} if headers else {}
