"""The scripts that a site's pages load to send beacons: views and events, and events of clicks."""

import hashlib
import re
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from api.http.headers import matches_etag
from api.http.operation import IF_NONE_MATCH, NOT_MODIFIED, Operation, Success

_COMMENT = re.compile(r"(?m)(?:^|\s+)// .*$")
_SPACE = re.compile(r"('[^'\n]*'|`[^`]*`)|\s*([-+{}()\[\],;:=?|&<>!]|$)\s*")
"""A text, which stays as it is, or a sign with the white space around it. Each statement ends with a semicolon."""


def _small(name: str) -> bytes:
    """Return a script without comments and white space. Names stay readable for the owner who debugs a page."""
    source = _COMMENT.sub("", (Path(__file__).parent / name).read_text())
    return _SPACE.sub(lambda match: match[1] or match[2], source).encode()


SCRIPTS = {name: _small(name) for name in ("beacon.js", "events.js")}
_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "public, max-age=86400",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}


async def script(name: str, request: Request) -> Response:
    """Respond to GET /beacon.js and /events.js. beacon.js imports the other from any page's origin."""
    digest = hashlib.blake2b(SCRIPTS[name], digest_size=8).hexdigest()
    headers = {**_HEADERS, "ETag": f'W/"{digest}"'}
    if matches_etag(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(SCRIPTS[name], 200, headers, "text/javascript")


OPERATIONS = tuple(
    Operation(
        id,
        "GET",
        f"/{name}",
        partial(script, name),
        "Send",
        parameters=(IF_NONE_MATCH,),
        responses=(Success(200, "JavaScript.", {"text/javascript": str}, ("ETag", "Cache-Control")), NOT_MODIFIED),
        key="none",
    )
    for id, name in zip(("script", "eventsScript"), SCRIPTS, strict=True)
)
