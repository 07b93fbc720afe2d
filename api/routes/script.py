"""The script that a site's pages load to send beacons."""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from api.http.headers import matches_etag
from api.http.operation import IF_NONE_MATCH, NOT_MODIFIED, Operation, Success

_SCRIPT = (Path(__file__).parent / "beacon.js").read_bytes()
_HEADERS = {
    "Cache-Control": "public, max-age=86400",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "ETag": f'W/"{hashlib.blake2b(_SCRIPT, digest_size=8).hexdigest()}"',
    "X-Content-Type-Options": "nosniff",
}


async def script(request: Request) -> Response:
    """Respond to GET /beacon.js."""
    if matches_etag(request, _HEADERS["ETag"]):
        return Response(status_code=304, headers=_HEADERS)
    return Response(_SCRIPT, 200, _HEADERS, "text/javascript")


OPERATIONS = (
    Operation(
        "script",
        "GET",
        "/beacon.js",
        script,
        "Send",
        parameters=(IF_NONE_MATCH,),
        responses=(
            Success(200, "JavaScript.", {"text/javascript": str}, ("ETag", "Cache-Control")),
            NOT_MODIFIED,
        ),
        key="none",
    ),
)
