"""The page to which a sign-in returns, which is never one of another site."""

from urllib.parse import parse_qsl, urlsplit

from api.dashboard.web.visit import Visit

PROJECTS = "/projects"


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
