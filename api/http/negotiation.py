"""Content negotiation: the media type and the coding of a response (https://www.rfc-editor.org/rfc/rfc9110#section-12.5)."""

import re
from collections.abc import Sequence

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipResponder
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.headers import accepts_gzip
from api.http.problems import Problem

VARY = "Accept-Encoding"
BYTES_MIN = 500
"""Size from which a response is compressed."""
LEVEL = 6
"""Level of gzip. Level 9 takes twice the time for a page that is 3 % smaller; zstd is not in Python 3.11."""
UNCOMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/vnd.apache.parquet")
"""Media types that are compressed already, or whose readers wait for each event."""
_QUALITY = re.compile(r"[01](\.\d{0,3})?")


def accepted(request: Request, media_types: Sequence[str], resource: str) -> str:
    """Return the best of `media_types` for the Accept header, the first one if several are equal.

    Raises Problem `not-acceptable`.
    """
    header = ", ".join(request.headers.getlist("accept")) or "*/*"
    best, best_quality = "", 0.0
    for media_type in media_types:
        if (quality := _quality_of(media_type, header)) > best_quality:
            best, best_quality = media_type, quality
    if not best:
        available = f"{', '.join(media_types[:-1])} or {media_types[-1]}"
        raise Problem("not-acceptable", f"{resource} is available as {available}")
    return best


def _quality_of(media_type: str, header: str) -> float:
    """Return the quality of a media type in an Accept header, which the most specific matching range decides."""
    group = media_type.split("/", maxsplit=1)[0]
    best = (-1, 0.0)
    for each in header.split(","):
        name, *parameters = (part.strip().lower() for part in each.split(";"))
        specificity = {media_type: 2, f"{group}/*": 1, "*/*": 0}.get(name)
        if specificity is not None:
            quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
            best = max(best, (specificity, float(quality) if _QUALITY.fullmatch(quality) else 1.0))
    return best[1]


class Compression:
    """ASGI middleware that compresses the responses to GET, and streams those that are streamed.

    The size of a compressed response can reveal a secret in it, beside a text that a stranger chose: see
    https://breachattack.com. Only the response to the POST that
    creates a key or a share link has a secret that is not in its address.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an app."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return

        async def send_varied(message: Message) -> None:
            """Name the header also for small and empty responses, such as 304, which Starlette does not compress."""
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                if VARY not in headers.get("vary", ""):
                    headers.add_vary_header(VARY)
            await send(message)

        app = self._app
        if accepts_gzip(Request(scope)):
            app = GZipResponder(app, BYTES_MIN, LEVEL, exclude_content_types=UNCOMPRESSED)
        await app(scope, receive, send_varied)
