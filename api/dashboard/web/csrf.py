"""Protection of forms against other sites (cross-site request forgery)."""

from urllib.parse import urlsplit

from starlette.requests import Request

from api.dashboard.web.links import public_url
from api.http.headers import header
from api.http.problems import Problem

_OWN = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site for a request from a page of the service, or from the user."""


def require_own_origin(request: Request, base_url: str) -> None:
    """Check that a page of this service posted the form: by Sec-Fetch-Site, or else by Origin.

    Browsers send Sec-Fetch-Site only over HTTPS and to their own machine: https://www.w3.org/TR/fetch-metadata/

    Raises:
        Problem: `forbidden`.
    """
    site = header(request, b"sec-fetch-site")
    if site is not None:
        is_own = site in _OWN
    else:
        origin = header(request, b"origin") or ""
        hosts = {urlsplit(public_url(request, base_url)).netloc, header(request, b"host")}
        is_own = urlsplit(origin).netloc in hosts - {None, ""}
    if not is_own:
        raise Problem("forbidden", "the form was not sent by a page of this dashboard: open the page again")
