"""The session of the browser that sends a request, and the page to which a sign-in returns."""

from urllib.parse import parse_qsl, urlsplit

from starlette.responses import Response

from api.accounts import sessions
from api.dashboard.web import cookies
from api.dashboard.web.visit import Visit
from warehouse.control.audit import Action

PROJECTS = "/projects"


def start(visit: Visit, user_id: str, response: Response, action: Action | None = "signed in") -> Response:
    """Start a session, end the earlier one of the browser, and return the response with the new cookie.

    The token is always a new one: a token that someone else planted in the browser signs in nobody.
    """
    _end_earlier(visit)
    token = sessions.start(visit.state.control, user_id, int(visit.now.timestamp()), action)
    cookies.set_session(visit.request, response, token, visit.base_url)
    return response


def end(visit: Visit, response: Response) -> Response:
    """End the session of the browser, and return the response that deletes the cookie."""
    _end_earlier(visit)
    cookies.clear_session(visit.request, response, visit.base_url)
    return response


def _end_earlier(visit: Visit) -> None:
    token = cookies.session_token(visit.request, visit.base_url)
    if token is not None:
        sessions.end(visit.state.control, token)


def own_href(visit: Visit, text: str | None) -> str:
    """Return the address of a page of this service from the parameter `next`, or of the projects for any other text.

    The address is built from path and query: it begins with the path of the service and one slash.
    """
    try:
        parts = urlsplit(text or PROJECTS)
        query = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=100))
    except ValueError:  # such as an invalid IPv6 address, or too many parameters
        return visit.href(PROJECTS)
    is_own = not parts.scheme and not parts.netloc and parts.path.startswith("/") and not parts.path.startswith("//")
    return visit.href(parts.path, **query) if is_own else visit.href(PROJECTS)
