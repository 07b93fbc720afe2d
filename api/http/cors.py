"""Cross-origin resource sharing (CORS): the origins whose pages may send beacons, and the headers that pages may read.

https://fetch.spec.whatwg.org/#http-cors-protocol

A page of another site must not count its visitors as visitors of a project. Browsers send the `Origin` of a beacon, but
not that of an image: see `require_own_page`.
"""

from starlette.requests import Request

from api.http.headers import header
from api.http.problems import Problem
from ingest.hits.url import host
from warehouse.control.projects import ANY_ORIGIN, Project, origin_of
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
        raise refused(project, f"the origin {origin!r}")
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
            raise refused(project, "a page of another site that withholds its address (Referer)")
    elif not project.allows(origin := _origin(referer)):
        raise refused(project, f"the origin {origin!r}")


def require_own_url(project: Project, url: str | None) -> None:
    """Raise Problem `origin-not-allowed` for a page of a host that is not one of the project's, if it has any."""
    if url and project.origins and not project.allows_host(host(url)):
        raise refused(project, f"the origin {_origin(url)!r}")


def refused(project: Project, sender: str) -> Problem:
    """Return the problem `origin-not-allowed`, which names the sender and the command that allows it."""
    origins = " ".join(("readership project origins", project.id, *project.origins))
    detail = f"project {project.id!r} does not accept beacons from {sender}; to accept them: {origins} ORIGIN"
    return Problem("origin-not-allowed", detail, headers={"Vary": "Origin"})


def _origin(url: str) -> str:
    """Return the origin of a URL as browsers send it, or a text that has none; of a long one, its beginning."""
    try:
        return origin_of(url)[:ORIGIN_CHARACTERS_MAX]
    except InvalidProject:
        return url[:ORIGIN_CHARACTERS_MAX]


def preflight(request: Request, project: Project) -> dict[str, str]:
    """Return the headers that let a page of one of the project's origins post JSON.

    Raises:
        Problem: as `allowed`.
    """
    headers = allowed(request, project)
    return {**headers, **_PREFLIGHT} if headers else {}
