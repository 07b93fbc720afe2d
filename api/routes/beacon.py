"""The script that a site's pages load to send beacons."""

import gzip
import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from api.http.headers import knows

_SCRIPT = (Path(__file__).parent / "beacon.js").read_bytes()
_PACKED = gzip.compress(_SCRIPT, mtime=0)
_HEADERS = {
    "Cache-Control": "public, max-age=86400",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "ETag": f'"{hashlib.blake2b(_SCRIPT, digest_size=8).hexdigest()}"',
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}


async def beacon(request: Request) -> Response:
    """GET /beacon.js"""
    if knows(request, _HEADERS["ETag"]):
        return Response(status_code=304, headers=_HEADERS)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(_PACKED, 200, {**_HEADERS, "Content-Encoding": "gzip"}, "text/javascript")
    return Response(_SCRIPT, 200, _HEADERS, "text/javascript")
