"""The session of the browser that sends a request."""

from starlette.responses import Response

from api.accounts import sessions
from api.dashboard.web import cookies
from api.dashboard.web.visit import Visit
from warehouse.control.audit import Action


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
