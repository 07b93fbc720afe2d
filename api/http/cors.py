"""Cross-origin resource sharing (CORS): the origins whose pages may send beacons, and the headers that pages may read.

https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from starlette.requests import Request

from api.http.headers import header
from api.http.problems import Problem
from warehouse.control.projects import Project

_PREFLIGHT = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "Content-Type",
    "Access-Control-Max-Age": "86400",
}
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
        detail = f"project {project.id!r} does not accept beacons from the origin {origin!r}"
        raise Problem("origin-not-allowed", detail, headers={"Vary": "Origin"})
    return {} if origin is None else {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def preflight(request: Request, project: Project) -> dict[str, str]:
    """Return the headers that let a page of one of the project's origins post JSON.

    Raises:
        Problem: as `allowed`.
    """
    headers = allowed(request, project)
    return {**headers, **_PREFLIGHT} if headers else {}
