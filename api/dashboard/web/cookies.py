"""Cookies of the dashboard: the token of a session, and the time zone of the viewer."""

from starlette.requests import Request
from starlette.responses import Response

from api.dashboard.web.links import is_https

COOKIE_DAYS = 400
"""Lifetime of the session's cookie, in days: the longest that browsers accept. The session itself ends earlier, and is
renewed by use: see `accounts.sessions`."""
ZONE = "readership_zone"
"""Name of the cookie with the IANA time zone of the viewer, which `app.js` sets."""
_NAME = "readership_session"
_DAY_S = 86_400


def session_token(request: Request, base_url: str) -> str | None:
    return request.cookies.get(_name(request, base_url))


def set_session(request: Request, response: Response, token: str, base_url: str) -> None:
    """Set the cookie of a session. Scripts cannot read it, and requests that other sites post do not have it."""
    response.set_cookie(
        _name(request, base_url),
        token,
        max_age=COOKIE_DAYS * _DAY_S,
        path="/",
        secure=is_https(request, base_url),
        httponly=True,
        samesite="lax",
    )


def clear_session(request: Request, response: Response, base_url: str) -> None:
    name, secure = _name(request, base_url), is_https(request, base_url)
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def _name(request: Request, base_url: str) -> str:
    """Return the name of the cookie. With `__Host-` no other subdomain can set it; browsers accept it on HTTPS only.

    https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Set-Cookie#cookie_prefixes
    """
    return f"__Host-{_NAME}" if is_https(request, base_url) else _NAME
