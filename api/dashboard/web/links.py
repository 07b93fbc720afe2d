"""Addresses of pages: the path prefix of a proxy, and the scheme and host that visitors use."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode, urlsplit

from starlette.requests import Request


def href(base_url: str, path: str, parameters: Mapping[str, str | None]) -> str:
    """Return the address of a page of this service for a link: the prefix of `base_url`, the path and the query.

    `path` is not encoded yet. A parameter with the value None is left out.
    """
    query = urlencode({name: value for name, value in parameters.items() if value is not None})
    return prefix(base_url) + quote(path, safe="/:@!$&'()*+,;=-._~") + (f"?{query}" if query else "")


def prefix(base_url: str) -> str:
    """Return the path of `base_url` without a slash at its end; it is empty without a proxy that adds a prefix."""
    return urlsplit(base_url).path.rstrip("/")


def public_url(request: Request, base_url: str) -> str:
    """Return the address of the service for visitors, without a slash at its end."""
    return base_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"


def is_https(request: Request, base_url: str) -> bool:
    """Return whether visitors use HTTPS, which a proxy in front of the service may provide."""
    return urlsplit(public_url(request, base_url)).scheme == "https"
